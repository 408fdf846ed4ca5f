// Exact counting of CPU allocations, and of what one planned step allocates.
//
// A thin allocator stands in front of torch's CPU allocator. Each block that is allocated while a session is open, or by a thread
// inside a Meter's scope, is remembered with its requested size until it is freed, on whatever thread that happens. Blocks
// allocated at any other time pass through untouched.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace memscale::runtime {

/// Bytes alive and their maximum. Thread safe.
class Meter {
 public:
  void add(int64_t bytes);
  void sub(int64_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

/// While it lives, this thread's CPU allocations are counted by `meter` (and so are their frees, whenever they come).
class MeterScope {
 public:
  explicit MeterScope(std::shared_ptr<Meter> meter);
  ~MeterScope();
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  std::shared_ptr<Meter> previous_;
};

/// Process-wide session: counts every CPU allocation made after it, on any thread. One at a time; throws c10::Error otherwise.
void accounting_begin();
/// Bytes of the session's allocations that are alive now, and their peak so far.
int64_t accounting_current();
int64_t accounting_peak();
/// Ends the session and returns its peak.
int64_t accounting_end();

}  // namespace memscale::runtime
