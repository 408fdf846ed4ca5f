// Shape functions, and libtorch's own meta kernels where there is none, against recorded calls of real kernels and against the
// real CPU kernels run here. MEMSCALE_CALLS_SHOWN=N shows N failures an op.
#include "compiler/capture/shapes/shapes.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/unit/capture/recorded_calls.h"

namespace memscale::shapes {
namespace {

using torch::jit::Stack;

capture::Target target_of(const std::string& device) { return {device, device == "cuda" ? 90 : 0}; }

bool depends_on_data(const c10::OperatorHandle& op, const RecordedCall& call) {
  // Tags that say too little or too much: the latter's lengths are numbers in the call.
  if (call.name == "aten::_unique") return true;
  if (call.name == "aten::_ctc_loss") return false;
  if (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output)) {
    if (call.name == "aten::index.Tensor") {
      for (const RecordedValue& index : *call.arguments.at(1).list)
        if (index.tensor && (index.tensor->dtype == c10::kBool || index.tensor->dtype == c10::kByte)) return true;
      return false;
    }
    return call.name != "aten::repeat_interleave.Tensor" || call.arguments.at(1).text == "-";
  }
  return false;
}

std::string compare(Materializer& materializer, const Stack& results, const RecordedCall& call) {
  if (results.size() != call.results.size())
    return std::to_string(results.size()) + " results, expected " + std::to_string(call.results.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (std::string text = materializer.difference(results[i], call.results[i]); !text.empty())
      return "result " + std::to_string(i) + ": " + text;
  return {};
}

/// What the capture computes for the call.
std::string check_meta(const c10::OperatorHandle& op, const RecordedCall& call, const std::string& device) {
  Materializer materializer(c10::kMeta);
  Stack stack = materializer.arguments(op, call);
  const at::AutoDispatchBelowADInplaceOrView below;
  try {
    if (const ShapeFn shape = find_shape_function(op.operator_name(), target_of(device)))
      shape(op, stack);
    else
      op.callBoxed(&stack);
  } catch (const c10::NotImplementedError& error) {
    return "no meta kernel";
  } catch (const std::exception& error) {
    return std::string("threw ") + std::string(error.what()).substr(0, 300);
  }
  return compare(materializer, stack, call);
}

/// What the real kernel gives here; empty as well where it refuses the invented contents.
std::string check_real(const c10::OperatorHandle& op, const RecordedCall& call, int& refused) {
  Materializer materializer(c10::kCPU);
  Stack stack = materializer.arguments(op, call);
  const at::AutoDispatchBelowADInplaceOrView below;
  try {
    op.callBoxed(&stack);
  } catch (const std::exception& error) {
    ++refused;
    return {};
  }
  return compare(materializer, stack, call);
}

struct Failures {
  std::map<std::string, std::vector<std::string>> by_op;
  void add(const RecordedCall& call, const std::string& what) {
    by_op[call.name].push_back(what + "\n    " + call.line.substr(0, 600));
  }
  std::string text(size_t per_op) const {
    std::string all;
    for (const auto& [op, list] : by_op) {
      all += op + ": " + std::to_string(list.size()) + "\n";
      for (size_t i = 0; i < std::min(list.size(), per_op); ++i) all += "  " + list[i] + "\n";
    }
    return all;
  }
};

struct Checked {
  Failures meta, real;
  std::set<std::string> covered;  // ops with a call that was checked
  int calls = 0, refused = 0;
};

Checked check(const std::string& path, const std::string& device, bool rerun) {
  Checked checked;
  for (const RecordedCall& call : read_calls(path)) {
    const size_t dot = call.name.find('.');
    const auto op = c10::Dispatcher::singleton().findSchema(
        {call.name.substr(0, dot), dot == std::string::npos ? "" : call.name.substr(dot + 1)});
    if (!op) {
      checked.meta.add(call, "unknown operator");
      continue;
    }
    if (depends_on_data(*op, call)) continue;
    ++checked.calls;
    checked.covered.insert(call.name);
    checked.covered.insert(call.name.substr(0, dot));
    if (const std::string text = check_meta(*op, call, device); !text.empty()) checked.meta.add(call, text);
    if (rerun)
      if (const std::string text = check_real(*op, call, checked.refused); !text.empty()) checked.real.add(call, text);
  }
  return checked;
}

size_t per_op() {
  const char* setting = std::getenv("MEMSCALE_CALLS_SHOWN");
  return setting ? std::stoul(setting) : 4;
}

const std::string kData = "tests/data/shapes/";

/// Ops of CUDA that nothing but the device can tell: the states of cuDNN's dropout, and packed attention.
const std::set<std::string> kKnownGaps = {"aten::_cudnn_init_dropout_state", "aten::_efficient_attention_forward"};

TEST(ShapeFunctions, AgreeWithTheCpuKernels) {
  at::set_num_threads(1);  // as recorded: the choice of a convolution's kernel depends on it
  const Checked checked = check(kData + "cpu.calls", "cpu", true);
  EXPECT_EQ(checked.meta.text(per_op()), "");
  EXPECT_EQ(checked.real.text(per_op()), "")
      << "the recording is not of this build of torch: record it again (docs/adding-an-op.md)";
  EXPECT_LT(checked.refused, checked.calls / 10) << "kernels that refuse the test's contents";
  for (const std::string& name : shape_function_names("cpu"))
    EXPECT_TRUE(checked.covered.count(name)) << name << " has no recorded call";
}

TEST(ShapeFunctions, AgreeWithTheH200) {
  Checked checked = check(kData + "cuda_sm90.calls", "cuda", false);
  for (const std::string& gap : kKnownGaps)
    EXPECT_EQ(checked.meta.by_op.erase(gap), 1) << gap << " is no gap any more: take it off the list";
  EXPECT_EQ(checked.meta.text(per_op()), "");
  for (const std::string& name : shape_function_names("cuda"))
    EXPECT_TRUE(checked.covered.count(name)) << name << " has no recorded call";
}

}  // namespace
}  // namespace memscale::shapes
