// State lists: tying by storage and layout, sizes for the model's info.
// Needs tensors with storages (meta tensors have them too). Destroys nothing.
#include "compiler/import/state.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace memscale::import {
namespace {

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (!a.has_storage() || !b.has_storage() || a.storage().nbytes() == 0) return false;
  return a.storage().is_alias_of(b.storage()) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

const void* storage_key(const at::Tensor& t) {
  return t.has_storage() && t.storage().nbytes() > 0 ? static_cast<const void*>(t.storage().unsafeGetStorageImpl()) : nullptr;
}

/// First and one past the last byte of the storage that the tensor touches.
std::pair<int64_t, int64_t> extent(const at::Tensor& t) {
  int64_t last = t.storage_offset();
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  int64_t item = static_cast<int64_t>(t.element_size());
  return {t.storage_offset() * item, (last + 1) * item};
}

using Names = std::vector<std::string>;

/// The names of one module in `list`, whose prefix ends at `at`: its own tensors, and those of each child in order of first
/// appearance.
struct Level {
  Names own;
  std::vector<std::pair<std::string, Names>> children;

  Level(const Names& list, size_t at) {
    std::map<std::string, size_t> place;
    for (const std::string& name : list) {
      const size_t dot = name.find('.', at);
      if (dot == std::string::npos) {
        own.push_back(name);
        continue;
      }
      const auto [entry, fresh] = place.try_emplace(name.substr(at, dot - at), children.size());
      if (fresh) children.emplace_back(entry->first, Names{});
      children[entry->second].second.push_back(name);
    }
  }
  Names take(const std::string& child) {
    for (auto& [name, names] : children)
      if (name == child) return std::move(names);
    return {};
  }
};

void merge_level(const Names& parameters, const Names& buffers, size_t at, Names& out) {
  Level first(parameters, at), second(buffers, at);
  out.insert(out.end(), first.own.begin(), first.own.end());
  out.insert(out.end(), second.own.begin(), second.own.end());
  Names order;  // of the children; what only the buffers know stands before the next child that both know
  auto next = second.children.begin();
  for (const auto& child : first.children) {
    const auto same = std::find_if(next, second.children.end(), [&](const auto& other) { return other.first == child.first; });
    if (same != second.children.end())
      for (; next != same + 1; ++next)
        if (next != same) order.push_back(next->first);
    order.push_back(child.first);
  }
  for (; next != second.children.end(); ++next) order.push_back(next->first);
  for (const std::string& child : order) merge_level(first.take(child), second.take(child), at + child.size() + 1, out);
}

}  // namespace

std::vector<std::string> merge_names(const std::vector<std::string>& parameters, const std::vector<std::string>& buffers) {
  std::vector<std::string> names;
  merge_level(parameters, buffers, 0, names);
  return names;
}

void StateList::add(StateTensor found) {
  names_.push_back(found.name);
  const void* memory = storage_key(found.tensor);
  if (memory == nullptr) memory = found.tensor.unsafeGetTensorImpl();
  std::vector<size_t>& places = by_memory_[memory];
  for (size_t place : places) {
    StateTensor& known = state_[place];
    if (known.is_parameter == found.is_parameter && same_tensor(known.tensor, found.tensor)) {
      known.aliases.push_back(found.name);
      known.persistent |= found.persistent;
      return;
    }
  }
  places.push_back(state_.size());
  state_.push_back(std::move(found));
}

Expected<std::vector<StateTensor>> StateList::take() {
  std::map<const void*, std::vector<const StateTensor*>> by_storage;
  for (const StateTensor& s : state_) {
    if (const void* key = storage_key(s.tensor); key != nullptr && s.tensor.numel() > 0) by_storage[key].push_back(&s);
  }
  for (const StateTensor& s : state_) {
    const void* key = storage_key(s.tensor);
    if (key == nullptr || s.tensor.numel() == 0) continue;
    for (const StateTensor* other : by_storage[key]) {
      if (other == &s || !(s.requires_grad || other->requires_grad)) continue;
      auto [begin, end] = extent(s.tensor);
      auto [other_begin, other_end] = extent(other->tensor);
      if (begin < other_end && other_begin < end) {
        return Error{
            Exit::kUnsupported,
            "'" + s.name + "' and '" + other->name + "' share memory without being one parameter, and one of them is trained",
            "give each its own memory before saving, e.g. by .clone(), or make them one parameter"};
      }
    }
  }
  return std::move(state_);
}

void count_state(const std::vector<StateTensor>& state, ModelInfo& info) {
  for (const StateTensor& s : state) {
    int64_t bytes = static_cast<int64_t>(s.tensor.numel() * s.tensor.element_size());
    if (s.is_parameter) {
      ++info.parameter_count;
      info.parameter_bytes += bytes;
    } else {
      info.buffer_bytes += bytes;
    }
  }
}

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "f32";
    case at::kDouble:
      return "f64";
    case at::kHalf:
      return "f16";
    case at::kBFloat16:
      return "bf16";
    case at::kLong:
      return "i64";
    case at::kInt:
      return "i32";
    case at::kShort:
      return "i16";
    case at::kChar:
      return "i8";
    case at::kByte:
      return "u8";
    case at::kBool:
      return "bool";
    case at::kComplexFloat:
      return "c64";
    case at::kComplexDouble:
      return "c128";
    case at::kFloat8_e4m3fn:
      return "f8e4m3fn";
    case at::kFloat8_e5m2:
      return "f8e5m2";
    default:
      return c10::toString(type);
  }
}

}  // namespace memscale::import
