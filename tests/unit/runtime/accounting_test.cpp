// The counting allocator against allocations of known sizes.
#include "runtime/core/accounting.h"

#include <thread>

#include "tests/unit/runtime/fixtures.h"

namespace memscale {
namespace {

using runtime::Meter;
using runtime::MeterScope;

TEST(Accounting, SessionCountsRequestedBytesAndTheirPeak) {
  const at::Tensor before = at::empty({1000});
  runtime::accounting_begin();
  at::Tensor a = at::empty({1000});                                     // 4000
  at::Tensor b = at::empty({3}, at::TensorOptions().dtype(at::kByte));  // 3
  EXPECT_EQ(runtime::accounting_current(), 4003);
  a.reset();
  EXPECT_EQ(runtime::accounting_current(), 3);
  const at::Tensor c = at::empty({10});  // 40
  EXPECT_EQ(runtime::accounting_peak(), 4003);
  EXPECT_EQ(runtime::accounting_end(), 4003);
}

TEST(Accounting, OlderBlocksAreNotCounted) {
  at::Tensor older = at::empty({1000});
  runtime::accounting_begin();
  older.reset();
  EXPECT_EQ(runtime::accounting_current(), 0);
  EXPECT_EQ(runtime::accounting_end(), 0);
}

TEST(Accounting, BlocksMayOutliveTheirSession) {
  runtime::accounting_begin();
  at::Tensor a = at::empty({1000});
  runtime::accounting_end();
  runtime::accounting_begin();
  a.reset();  // of the session before
  EXPECT_EQ(runtime::accounting_current(), 0);
  runtime::accounting_end();
}

TEST(Accounting, OtherThreadsCount) {
  runtime::accounting_begin();
  at::Tensor a;
  std::thread([&] { a = at::empty({100}); }).join();
  EXPECT_EQ(runtime::accounting_current(), 400);
  std::thread([&] { a.reset(); }).join();
  EXPECT_EQ(runtime::accounting_current(), 0);
  EXPECT_EQ(runtime::accounting_end(), 400);
}

TEST(Accounting, SessionsDoNotNest) {
  EXPECT_NE(test::error_text([] { runtime::accounting_end(); }).find("no accounting is open"), std::string::npos);
  runtime::accounting_begin();
  EXPECT_NE(test::error_text([] { runtime::accounting_begin(); }).find("called twice"), std::string::npos);
  runtime::accounting_end();
}

TEST(Accounting, MetersFollowTheirBlocks) {
  auto meter = std::make_shared<Meter>();
  at::Tensor inside;
  {
    MeterScope scope(meter);
    inside = at::empty({100});
    const at::Tensor transient = at::empty({50});
  }
  const at::Tensor outside = at::empty({1000});
  EXPECT_EQ(meter->peak_bytes(), 600);
  EXPECT_EQ(meter->live_bytes(), 400);
  inside.reset();
  EXPECT_EQ(meter->live_bytes(), 0);
}

TEST(Accounting, ResizingAndRawAllocationStayConsistent) {
  runtime::accounting_begin();
  at::Tensor a = at::empty({100});
  a.resize_({200});
  EXPECT_EQ(runtime::accounting_current(), 800);
  a.reset();
  auto* allocator = c10::GetAllocator(c10::DeviceType::CPU);
  void* raw = allocator->raw_allocate(64);
  EXPECT_EQ(runtime::accounting_current(), 64);
  allocator->raw_deallocate(raw);
  EXPECT_EQ(runtime::accounting_current(), 0);
  runtime::accounting_end();
}

}  // namespace
}  // namespace memscale
