// See relaxation.h.
#include "compiler/planner/relaxation.h"

#include <algorithm>

namespace memscale::planner {
namespace {

/// Ops first..last between two uses of a storage.
struct Gap {
  int32_t first, last;
  double bytes;
  double rerun_us;
};

class Relaxer {
 public:
  Relaxer(const Tables& tables, int64_t budget_bytes) : tables_(tables), budget_(static_cast<double>(budget_bytes)) {
    const Problem& p = tables.problem();
    over_.assign(p.ops.size(), 0);
    std::vector<double> steps(p.ops.size() + 1, static_cast<double>(0));
    add_storages(steps);
    double held = static_cast<double>(tables.base_bytes());
    for (size_t i = 0; i < p.ops.size(); ++i) {
      held += steps[i];
      over_[i] = held + own(static_cast<int32_t>(i)) - budget_;
      base_us_ += p.ops[i].time_us;
    }
  }

  Relaxation run(double time_us, int iterations) {
    const size_t n = over_.size();
    Relaxation best;
    best.bound_us = base_us_;
    best.prices.assign(n, 0);
    std::vector<double> prices(n, 0), slope(n), sums(n + 1);
    double scale = 1;
    int stale = 0;
    for (int round = 0; round < iterations; ++round) {
      const double bound = evaluate(prices, sums, slope);
      if (bound > best.bound_us) {
        stale = bound > best.bound_us * (1 + 1e-6) ? 0 : stale + 1;
        best.bound_us = bound;
        best.prices = prices;
      } else {
        ++stale;
      }
      if (stale >= 6) {
        scale /= 2;
        stale = 0;
        prices = best.prices;
        evaluate(prices, sums, slope);
      }
      double norm = 0;
      for (size_t i = 0; i < n; ++i) {
        if (prices[i] == 0 && slope[i] < 0) slope[i] = 0;
        norm += slope[i] * slope[i];
      }
      if (norm == 0) break;
      const double step = scale * std::max(time_us - bound, 1e-6 * base_us_) / norm;
      for (size_t i = 0; i < n; ++i) prices[i] = std::max(0.0, prices[i] + step * slope[i]);
    }
    return best;
  }

 private:
  /// What the op itself needs: operands, outputs, workspace, less what it may write in place. Kept storages are counted by add_storages.
  double own(int32_t op) const {
    const Problem& p = tables_.problem();
    const Op& o = p.ops[op];
    int64_t bytes = o.workspace_bytes, shared = 0;
    for (int32_t s : tables_.operands(op))
      if (!p.storages[s].keep) bytes += p.storages[s].bytes;
    for (int32_t s : o.outputs) bytes += p.storages[s].bytes;
    for (const InPlace& c : o.inplace)
      if (!tables_.pinned(c.input) && !std::binary_search(o.mutates.begin(), o.mutates.end(), c.input))
        shared = std::max(shared, p.storages[c.output].bytes);
    return static_cast<double>(bytes - shared);
  }

  /// Fixed spans go into `steps` (differences per op), the others become gaps.
  void add_storages(std::vector<double>& steps) {
    const Problem& p = tables_.problem();
    std::vector<double> share(p.ops.size(), 0);  // bytes that an op's reruns are paid by
    const auto n = static_cast<int32_t>(p.ops.size());
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t s = 0; s < p.storages.size(); ++s) {
        const int32_t made = tables_.producer(static_cast<int32_t>(s));
        const double bytes = static_cast<double>(p.storages[s].bytes);
        if (p.storages[s].resident || made < 0 || bytes == 0) continue;
        if (p.storages[s].keep) {
          if (pass == 0 && made + 1 < n) {
            steps[made + 1] += bytes;
            steps[n] -= bytes;
          }
          continue;
        }
        const bool rerunnable = tables_.rerunnable(made);
        int32_t before = made;
        bool idle = false;
        for (int32_t use : tables_.uses(static_cast<int32_t>(s))) {
          if (use - before > 1) {
            if (!rerunnable && pass == 0) {
              steps[before + 1] += bytes;
              steps[use] -= bytes;
            } else if (rerunnable && pass == 1) {
              gaps_.push_back({before + 1, use - 1, bytes, p.ops[made].time_us * bytes / share[made]});
            }
            idle = true;
          }
          before = use;
        }
        if (pass == 0 && idle && rerunnable) share[made] += bytes;
      }
    }
  }

  /// The bound under these prices, and its slope: how far memory exceeds the budget where everybody takes the cheaper way.
  double evaluate(const std::vector<double>& prices, std::vector<double>& sums, std::vector<double>& slope) {
    const size_t n = prices.size();
    double bound = base_us_;
    sums[0] = 0;
    for (size_t i = 0; i < n; ++i) {
      sums[i + 1] = sums[i] + prices[i];
      bound += prices[i] * over_[i];
    }
    change_.assign(n + 1, 0);
    for (const Gap& gap : gaps_) {
      const double hold = gap.bytes * (sums[gap.last + 1] - sums[gap.first]);
      if (hold > gap.rerun_us) {
        bound += gap.rerun_us;
        continue;
      }
      bound += hold;
      change_[gap.first] += gap.bytes;
      change_[gap.last + 1] -= gap.bytes;
    }
    double held = 0;
    for (size_t i = 0; i < n; ++i) {
      held += change_[i];
      slope[i] = over_[i] + held;
    }
    return bound;
  }

  const Tables& tables_;
  double budget_, base_us_ = 0;
  std::vector<double> over_;  // per op, bytes that are there whatever is decided, less the budget
  std::vector<Gap> gaps_;
  std::vector<double> change_;
};

}  // namespace

Relaxation relax(const Tables& tables, int64_t budget_bytes, double time_us, int iterations) {
  return Relaxer(tables, budget_bytes).run(time_us, iterations);
}

}  // namespace memscale::planner
