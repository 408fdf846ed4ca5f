// Where make_archives.py wrote the test archives, and what belongs to reading them.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

inline std::string archive(const std::string& name) {
  const char* folder = std::getenv("MEMSCALE_IMPORT_ARCHIVES");
  return std::string(folder == nullptr ? "." : folder) + "/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// The tensors of NAME.expected.pt by name.
inline std::map<std::string, at::Tensor> expected_tensors(const std::string& name) {
  torch::jit::Module module = torch::jit::load(archive(name + ".expected.pt"));
  std::map<std::string, at::Tensor> out;
  c10::List<c10::IValue> names = module.attr("names").toList();
  std::vector<at::Tensor> tensors = module.attr("tensors").toTensorVector();
  for (size_t i = 0; i < tensors.size(); ++i) out[names.get(i).toStringRef()] = tensors[i];
  return out;
}

/// Models whose imported form is compared bit for bit, one per line of exact.txt.
inline std::vector<std::string> exact_models() {
  std::ifstream in(archive("exact.txt"));
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) names.push_back(line);
  return names;
}
