// Bytes in use per run of a sequence: adds over ranges, maxima over ranges, in O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace memscale::planner {

class MemoryTree {
 public:
  explicit MemoryTree(std::span<const int64_t> values) : size_(1) {
    while (size_ < values.size()) size_ *= 2;
    max_.assign(2 * size_, kEmpty);
    add_.assign(2 * size_, 0);
    std::copy(values.begin(), values.end(), max_.begin() + static_cast<int64_t>(size_));
    for (size_t i = size_; i-- > 1;) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
  }

  /// Adds to runs first..last, both included; nothing if first > last.
  void add(int64_t first, int64_t last, int64_t bytes) {
    if (first > last || bytes == 0) return;
    size_t left = size_ + static_cast<size_t>(first), right = size_ + static_cast<size_t>(last);
    const size_t l0 = left, r0 = right;
    for (++right; left < right; left /= 2, right /= 2) {
      if (left & 1) apply(left++, bytes);
      if (right & 1) apply(--right, bytes);
    }
    lift(l0);
    lift(r0);
  }

  int64_t max() const { return max_[1]; }

  /// The maximum over first..last, both included.
  int64_t max(int64_t first, int64_t last) const {
    int64_t best = kEmpty;
    if (first > last) return best;
    size_t left = size_ + static_cast<size_t>(first), right = size_ + static_cast<size_t>(last);
    // Adds above a node apply to all of it: carry them while climbing.
    int64_t best_left = max_[left], best_right = max_[right];
    while (left / 2 != right / 2) {
      if (!(left & 1)) best_left = std::max(best_left, max_[left + 1]);
      if (right & 1) best_right = std::max(best_right, max_[right - 1]);
      left /= 2;
      right /= 2;
      best_left += add_[left];
      best_right += add_[right];
    }
    best = std::max(best_left, best_right);
    for (left /= 2; left >= 1; left /= 2) best += add_[left];
    return best;
  }

 private:
  static constexpr int64_t kEmpty = INT64_MIN / 4;

  void apply(size_t node, int64_t bytes) {
    max_[node] += bytes;
    add_[node] += bytes;
  }
  void lift(size_t node) {
    for (node /= 2; node >= 1; node /= 2) max_[node] = std::max(max_[2 * node], max_[2 * node + 1]) + add_[node];
  }

  size_t size_;
  std::vector<int64_t> max_, add_;
};

}  // namespace memscale::planner
