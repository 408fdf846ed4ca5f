// The generated forward: nested inputs and outputs, optional arguments, what cannot be written.
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "compiler/export/wrapper_source.h"

namespace memscale {
namespace {

using exporter::WrapperError;
using exporter::WrapperRequest;
using exporter::write_wrapper;

std::string source(const std::string& schema, const std::string& inputs, const std::string& outputs, size_t in, size_t out) {
  const c10::FunctionSchema parsed = torch::jit::parseSchema(schema);
  WrapperRequest request;
  request.original = &parsed;
  request.input_structure = inputs;
  request.output_structure = outputs;
  request.input_count = in;
  request.output_count = out;
  return write_wrapper(request).text;
}

TEST(Wrapper, NestedArgumentsAreFlattenedInOrder) {
  const std::string text =
      source("f(Any self, Tensor x, (Tensor, Tensor[]) pair, Dict(str, Tensor) named) -> Tensor",
             R"({"names":["x","pair","named"],"args":[{"leaf":0},{"tuple":[{"leaf":1},{"list":[{"leaf":2}]}]},
                                      {"dict":{"a":{"leaf":3}}}],"kwargs":{}})",
             R"({"leaf":0})", 4, 1);
  EXPECT_NE(text.find("def forward(self, x: Tensor, pair: Tuple[Tensor, List[Tensor]], named: Dict[str, Tensor]) -> Tensor:"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("if len(v3) != 1:"), std::string::npos) << text;
  EXPECT_NE(text.find("\"a\" not in"), std::string::npos) << text;
}

TEST(Wrapper, OptionalArguments) {
  const std::string given =
      source("f(Any self, Tensor? m) -> Tensor", R"({"names":["m"],"args":[{"leaf":0}]})", R"({"leaf":0})", 1, 1);
  EXPECT_NE(given.find("if v0 is None:"), std::string::npos);
  const std::string absent =
      source("f(Any self, Tensor? m) -> Tensor", R"({"names":["m"],"args":[{"none":true}]})", R"({"leaf":0})", 0, 1);
  EXPECT_NE(absent.find("if v0 is not None:"), std::string::npos);
}

TEST(Wrapper, OutputsAreRebuilt) {
  const std::string text =
      source("f(Any self, Tensor x) -> ((Tensor, Dict(str, Tensor), int))", R"({"names":["x"],"args":[{"leaf":0}]})",
             R"({"tuple":[{"leaf":1},{"dict":{"loss":{"leaf":0}}},{"const":3}]})", 1, 2);
  EXPECT_NE(text.find("return (outs[1], annotate(Dict[str, Tensor], {\"loss\": outs[0]}), 3, )"), std::string::npos) << text;
}

TEST(Wrapper, WhatCannotBeWrittenIsAnError) {
  EXPECT_THROW(source("f(Any self, Tensor x) -> Tensor", R"({"names":["x"],"args":[{"leaf":1}]})", R"({"leaf":0})", 1, 1),
               WrapperError);
  EXPECT_THROW(source("f(Any self, Tensor x) -> Tensor", R"({"names":["x"],"args":[{"leaf":0}]})", R"({"leaf":0})", 2, 1),
               WrapperError);
  EXPECT_THROW(source("f(Any self, Tensor x) -> Tensor", R"({"names":["x"],"args":[{"leaf":0}]})", R"({"leaf":4})", 1, 1),
               WrapperError);
  EXPECT_THROW(source("f(Any self, Tensor x) -> Tensor", R"({"names":["x"],"args":[{"none":true}]})", R"({"leaf":0})", 0, 1),
               WrapperError);
  EXPECT_THROW(source("f(Any self, int n) -> Tensor", R"({"names":["n"],"args":[{"missing":"int"}]})", R"({"leaf":0})", 0, 1),
               WrapperError);
}

}  // namespace
}  // namespace memscale
