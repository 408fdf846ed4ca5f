// verify(): a plain interpreter of a plan. It runs the plan on symbolic values and compares with eager's order; it shares no code
// with the simulator or with any planner.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "compiler/planner/plan.h"

namespace memscale::planner {
namespace {

constexpr size_t kMaxFaults = 50;

/// What a storage holds: how often ops have mutated it since it was produced. The producer is unique, so this names the value.
using Version = int32_t;

class Interpreter {
 public:
  Interpreter(const Problem& problem, const Plan& plan) : p_(problem), plan_(plan) {}

  std::vector<std::string> run() {
    if (!check_shape()) return std::move(faults_);
    eager_versions();
    find_last_reads();
    if (faults_.empty()) walk();
    check_effects();
    if (faults_.empty()) recount();
    return std::move(faults_);
  }

 private:
  void fault(std::string text) {
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(text));
  }
  std::string at(size_t run) const {
    return "run " + std::to_string(run) + " (op " + std::to_string(plan_.runs[run].op) + ", " + op(run).name + ")";
  }
  std::string name(int32_t s) const { return "storage " + std::to_string(s) + " (" + p_.storages[s].name + ")"; }
  const Op& op(size_t run) const { return p_.ops[plan_.runs[run].op]; }

  static std::set<int32_t> touched(const Op& op) {
    std::set<int32_t> all(op.inputs.begin(), op.inputs.end());
    all.insert(op.mutates.begin(), op.mutates.end());
    return all;
  }

  bool check_shape() {
    auto faults = p_.check();
    if (!faults.empty()) {
      faults_ = std::move(faults);
      return false;
    }
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      const Run& run = plan_.runs[i];
      if (run.op < 0 || run.op >= static_cast<int64_t>(p_.ops.size())) {
        fault("run " + std::to_string(i) + " names op " + std::to_string(run.op) + " of " + std::to_string(p_.ops.size()));
        return false;
      }
      if (run.inplace < -1 || run.inplace >= static_cast<int64_t>(op(i).inplace.size())) {
        fault(at(i) + " takes in-place candidate " + std::to_string(run.inplace) + " of " + std::to_string(op(i).inplace.size()));
        return false;
      }
    }
    return true;
  }

  /// The version that each op sees of each storage which any op mutates.
  void eager_versions() {
    for (const Op& o : p_.ops)
      for (int32_t s : o.mutates) mutated_.insert(s);
    std::map<int32_t, Version> now;
    seen_.resize(p_.ops.size());
    for (size_t i = 0; i < p_.ops.size(); ++i) {
      for (int32_t s : touched(p_.ops[i]))
        if (mutated_.count(s)) seen_[i][s] = now[s];
      for (int32_t s : p_.ops[i].outputs) now[s] = 0;
      for (int32_t s : p_.ops[i].mutates) ++now[s];
    }
  }

  /// last_read_[{storage, producing run}]; the key's second part says which instance.
  void find_last_reads() {
    std::vector<int64_t> holder(p_.storages.size(), -1);
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      for (int32_t s : touched(op(i))) {
        if (p_.storages[s].resident) continue;
        if (holder[s] < 0)
          fault(at(i) + " reads " + name(s) + ", which no earlier run has produced");
        else
          last_read_[{s, holder[s]}] = static_cast<int64_t>(i);
      }
      for (int32_t s : op(i).outputs) {
        if (p_.storages[s].keep && holder[s] < 0) kept_.insert({s, static_cast<int64_t>(i)});
        holder[s] = static_cast<int64_t>(i);
        last_read_[{s, holder[s]}] = static_cast<int64_t>(i);
      }
    }
  }

  void walk() {
    std::map<std::pair<int32_t, int64_t>, int64_t> blocks;  // live instances and their bytes
    std::vector<int64_t> holder(p_.storages.size(), -1);
    std::map<int32_t, Version> version;
    int64_t live = p_.static_bytes;
    for (const Storage& s : p_.storages)
      if (s.resident) live += s.bytes;
    peak_ = live;
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      const Op& o = op(i);
      const auto uses = touched(o);
      for (int32_t s : uses) {
        if (!p_.storages[s].resident && !blocks.count({s, holder[s]})) fault(at(i) + " reads " + name(s) + " after it was freed");
        const auto expected = seen_[plan_.runs[i].op].find(s);
        if (expected != seen_[plan_.runs[i].op].end() && version[s] != expected->second)
          fault(at(i) + " reads " + name(s) + " after " + std::to_string(version[s]) +
                " mutations, eager's order reads it after " + std::to_string(expected->second));
      }
      int32_t taken_input = -1, taken_output = -1;
      if (plan_.runs[i].inplace >= 0) {
        const InPlace& c = o.inplace[plan_.runs[i].inplace];
        taken_input = c.input;
        taken_output = c.output;
        const Storage& in = p_.storages[c.input];
        if (in.resident || kept_.count({c.input, holder[c.input]}))
          fault(at(i) + " writes over " + name(c.input) + ", which is not the plan's to overwrite");
        else if (last_read_[{c.input, holder[c.input]}] != static_cast<int64_t>(i))
          fault(at(i) + " writes over " + name(c.input) + ", which run " +
                std::to_string(last_read_[{c.input, holder[c.input]}]) + " reads later");
        if (std::count(o.mutates.begin(), o.mutates.end(), c.input))
          fault(at(i) + " writes over " + name(c.input) + ", which it mutates");
      }
      const auto old_holder = holder;
      for (int32_t s : o.outputs) {
        holder[s] = static_cast<int64_t>(i);
        version[s] = 0;
        blocks[{s, holder[s]}] = p_.storages[s].bytes;
        if (s != taken_output) live += p_.storages[s].bytes;
      }
      for (int32_t s : o.mutates) ++version[s];
      if (live + o.workspace_bytes > peak_ || peak_run_ < 0) {
        peak_ = std::max(peak_, live + o.workspace_bytes);
        peak_run_ = static_cast<int32_t>(i);
      }
      auto release = [&](int32_t s, int64_t from, bool handed_over) {
        if (p_.storages[s].resident || kept_.count({s, from}) || last_read_[{s, from}] != static_cast<int64_t>(i)) return;
        blocks.erase({s, from});
        if (!handed_over) live -= p_.storages[s].bytes;
      };
      for (int32_t s : uses) release(s, old_holder[s], s == taken_input);
      for (int32_t s : o.outputs) release(s, holder[s], false);
      if (faults_.size() >= kMaxFaults) return;
    }
  }

  void check_effects() {
    std::vector<int64_t> first(p_.ops.size(), -1), count(p_.ops.size(), 0);
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      const int32_t o = plan_.runs[i].op;
      if (first[o] < 0) first[o] = static_cast<int64_t>(i);
      if (++count[o] == 2 && (!p_.ops[o].mutates.empty() || !p_.ops[o].recomputable))
        fault(at(i) + " runs a second time, and the op " +
              (p_.ops[o].recomputable ? "mutates a storage" : "is not recomputable"));
    }
    int64_t effect = -1, random = -1, forward_end = -1, backward_begin = -1;
    for (size_t o = 0; o < p_.ops.size(); ++o) {
      const std::string which = "op " + std::to_string(o) + " (" + p_.ops[o].name + ")";
      if (first[o] < 0) {
        fault(which + " never runs");
        continue;
      }
      if (!p_.ops[o].mutates.empty() && std::exchange(effect, first[o]) > first[o])
        fault(which + " mutates out of eager's order");
      if (p_.ops[o].rng && std::exchange(random, first[o]) > first[o])
        fault(which + " draws random numbers out of eager's order");
      if (static_cast<int64_t>(o) < p_.border) forward_end = std::max(forward_end, first[o]);
    }
    for (size_t i = 0; i < plan_.runs.size() && backward_begin < 0; ++i)
      if (plan_.runs[i].op >= p_.border) backward_begin = static_cast<int64_t>(i);
    if (backward_begin >= 0 && forward_end > backward_begin)
      fault(at(forward_end) + " is a forward op's first run and follows the backward " + at(backward_begin));
  }

  void recount() {
    double time = 0, base = 0;
    for (const Run& run : plan_.runs) time += p_.ops[run.op].time_us;
    for (const Op& o : p_.ops) base += o.time_us;
    if (plan_.peak_bytes != peak_ || plan_.peak_run != peak_run_)
      fault("the plan states a peak of " + std::to_string(plan_.peak_bytes) + " bytes at run " + std::to_string(plan_.peak_run) +
            ", the recount finds " + std::to_string(peak_) + " at run " + std::to_string(peak_run_));
    const double slack = 1e-9 * (1 + time);
    if (!(std::abs(plan_.time_us - time) <= slack) || !(std::abs(plan_.base_time_us - base) <= slack))
      fault("the plan states " + std::to_string(plan_.time_us) + " us of " + std::to_string(plan_.base_time_us) +
            ", the recount finds " + std::to_string(time) + " of " + std::to_string(base));
    if (plan_.lower_bound_bytes > peak_)
      fault("the plan states a lower bound of " + std::to_string(plan_.lower_bound_bytes) + " bytes, above its peak " +
            std::to_string(peak_));
  }

  const Problem& p_;
  const Plan& plan_;
  std::vector<std::string> faults_;
  std::set<int32_t> mutated_;
  std::vector<std::map<int32_t, Version>> seen_;
  std::map<std::pair<int32_t, int64_t>, int64_t> last_read_;
  std::set<std::pair<int32_t, int64_t>> kept_;
  int64_t peak_ = 0;
  int32_t peak_run_ = -1;
};

}  // namespace

std::vector<std::string> verify(const Problem& problem, const Plan& plan) { return Interpreter(problem, plan).run(); }

}  // namespace memscale::planner
