// Problem::check: the shape that every algorithm here relies on. One line per fault, at most kMaxFaults of them.
#include "compiler/planner/problem.h"

#include <algorithm>
#include <cmath>

namespace memscale::planner {
namespace {

constexpr size_t kMaxFaults = 50;
constexpr int64_t kMaxBytes = int64_t{1} << 50;  // of one storage or workspace: 1 PiB
constexpr int64_t kMaxTotal = int64_t{1} << 60;  // sums stay far from overflow
constexpr double kMaxTimeUs = 1e12;

class Checker {
 public:
  explicit Checker(const Problem& problem) : p_(problem), producer_(problem.storages.size(), -1) {}

  std::vector<std::string> run() {
    check_storages();
    check_border();
    for (size_t i = 0; i < p_.ops.size() && faults_.size() < kMaxFaults; ++i) check_op(i);
    for (size_t s = 0; s < p_.storages.size(); ++s)
      if (p_.storages[s].keep && !p_.storages[s].resident && producer_[s] < 0)
        fault(storage(s) + " is to be kept, and no op produces it");
    if (faults_.size() > kMaxFaults) {
      faults_.resize(kMaxFaults);
      faults_.push_back("more faults follow");
    }
    return std::move(faults_);
  }

 private:
  void fault(std::string text) { faults_.push_back(std::move(text)); }
  std::string storage(size_t s) const { return "storage " + std::to_string(s) + " (" + p_.storages[s].name + ")"; }
  std::string op(size_t i) const { return "op " + std::to_string(i) + " (" + p_.ops[i].name + ")"; }

  void check_storages() {
    int64_t total = 0;
    for (size_t s = 0; s < p_.storages.size() && faults_.size() < kMaxFaults; ++s) {
      const int64_t bytes = p_.storages[s].bytes;
      if (bytes < 0 || bytes > kMaxBytes) {
        fault(storage(s) + ": expected 0 to 2^50 bytes, found " + std::to_string(bytes));
        continue;
      }
      total += bytes;
      if (total > kMaxTotal) return fault(storage(s) + ": the storages up to here exceed 2^60 bytes together");
    }
  }

  void check_border() {
    const auto n = static_cast<int64_t>(p_.ops.size());
    if (p_.border < 0 || p_.border > n)
      return fault("border: expected 0 to " + std::to_string(n) + ", found " + std::to_string(p_.border));
    for (int64_t i = 0; i < p_.border; ++i)
      if (p_.ops[i].backward) {
        fault(op(i) + " is a backward op before the border " + std::to_string(p_.border));
        break;
      }
    if (p_.border < n && !p_.ops[p_.border].backward) fault(op(p_.border) + " stands at the border and is not a backward op");
    if (p_.static_bytes < 0 || p_.static_bytes > kMaxBytes)
      fault("static_bytes: expected 0 to 2^50, found " + std::to_string(p_.static_bytes));
    if (!p_.eager_extra_bytes.empty() && p_.eager_extra_bytes.size() != p_.ops.size())
      fault("eager_extra_bytes: expected none or " + std::to_string(n) + " entries, found " +
            std::to_string(p_.eager_extra_bytes.size()));
    for (size_t i = 0; i < p_.eager_extra_bytes.size(); ++i)
      if (p_.eager_extra_bytes[i] < 0 || p_.eager_extra_bytes[i] > kMaxBytes) {
        fault("eager_extra_bytes[" + std::to_string(i) + "]: expected 0 to 2^50, found " +
              std::to_string(p_.eager_extra_bytes[i]));
        break;
      }
  }

  /// True if every entry names a storage and the list is sorted and unique.
  bool check_list(size_t i, const char* what, const std::vector<int32_t>& list) {
    for (size_t k = 0; k < list.size(); ++k) {
      if (list[k] < 0 || list[k] >= static_cast<int64_t>(p_.storages.size())) {
        fault(op(i) + ": " + what + "[" + std::to_string(k) + "] names storage " + std::to_string(list[k]) + " of " +
              std::to_string(p_.storages.size()));
        return false;
      }
      if (k > 0 && list[k] <= list[k - 1]) {
        fault(op(i) + ": " + what + " must be sorted and unique, found " + std::to_string(list[k]) + " after " +
              std::to_string(list[k - 1]));
        return false;
      }
    }
    return true;
  }

  void check_op(size_t i) {
    const Op& o = p_.ops[i];
    if (!std::isfinite(o.time_us) || o.time_us < 0 || o.time_us > kMaxTimeUs)
      fault(op(i) + ": expected 0 to 1e12 us, found " + std::to_string(o.time_us));
    if (o.workspace_bytes < 0 || o.workspace_bytes > kMaxBytes)
      fault(op(i) + ": expected a workspace of 0 to 2^50 bytes, found " + std::to_string(o.workspace_bytes));
    if (o.block < -1) fault(op(i) + ": expected block -1 or more, found " + std::to_string(o.block));
    const bool inputs = check_list(i, "inputs", o.inputs);
    const bool outputs = check_list(i, "outputs", o.outputs);
    const bool mutates = check_list(i, "mutates", o.mutates);
    if (!inputs || !outputs || !mutates) return;
    for (int32_t s : o.inputs) check_alive(i, "reads", s);
    for (int32_t s : o.mutates) check_alive(i, "mutates", s);
    for (const InPlace& c : o.inplace) check_inplace(i, c);
    for (int32_t s : o.outputs) {
      if (p_.storages[s].resident) fault(op(i) + " produces " + storage(s) + ", which is resident");
      if (producer_[s] >= 0)
        fault(op(i) + " produces " + storage(s) + ", which op " + std::to_string(producer_[s]) + " produces already");
      producer_[s] = static_cast<int32_t>(i);
    }
  }

  void check_alive(size_t i, const char* verb, int32_t s) {
    if (!p_.storages[s].resident && producer_[s] < 0)
      fault(op(i) + " " + verb + " " + storage(s) + ", which is not resident and which no earlier op produces");
  }

  void check_inplace(size_t i, const InPlace& c) {
    const Op& o = p_.ops[i];
    const std::string pair = "in-place " + std::to_string(c.input) + " -> " + std::to_string(c.output);
    if (!std::binary_search(o.inputs.begin(), o.inputs.end(), c.input))
      return fault(op(i) + ": " + pair + ": storage " + std::to_string(c.input) + " is not among its inputs");
    if (!std::binary_search(o.outputs.begin(), o.outputs.end(), c.output))
      return fault(op(i) + ": " + pair + ": storage " + std::to_string(c.output) + " is not among its outputs");
    if (p_.storages[c.input].bytes != p_.storages[c.output].bytes)
      fault(op(i) + ": " + pair + ": the sizes differ, " + std::to_string(p_.storages[c.input].bytes) + " and " +
            std::to_string(p_.storages[c.output].bytes) + " bytes");
  }

  const Problem& p_;
  std::vector<int32_t> producer_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> Problem::check() const { return Checker(*this).run(); }

}  // namespace memscale::planner
