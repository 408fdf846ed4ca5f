// The counting CPU allocator. Needs c10; installs itself on first use and stays, because blocks outlive sessions.
#include "runtime/core/accounting.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <mutex>
#include <unordered_map>

namespace memscale::runtime {
namespace {

thread_local std::shared_ptr<Meter> current_meter;

struct Block {
  int64_t bytes = 0;
  std::shared_ptr<Meter> meter;
  std::shared_ptr<Meter> session;
};

/// Blocks that are being counted, by address. Never destroyed: tensors may be freed after static destructors ran.
class Table {
 public:
  void insert(void* ptr, Block block) {
    Shard& shard = shard_of(ptr);
    std::lock_guard<std::mutex> lock(shard.mutex);
    shard.blocks[ptr] = std::move(block);
  }
  bool take(void* ptr, Block* block) {
    Shard& shard = shard_of(ptr);
    std::lock_guard<std::mutex> lock(shard.mutex);
    const auto it = shard.blocks.find(ptr);
    if (it == shard.blocks.end()) return false;
    *block = std::move(it->second);
    shard.blocks.erase(it);
    return true;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<void*, Block> blocks;
  };
  Shard& shard_of(void* ptr) { return shards_[(reinterpret_cast<uintptr_t>(ptr) >> 6) % shards_.size()]; }
  std::array<Shard, 16> shards_;
};

Table& table() {
  static Table* instance = new Table;
  return *instance;
}

std::mutex& session_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}
std::atomic<bool> session_open{false};
std::shared_ptr<Meter>& session_meter() {
  static auto* meter = new std::shared_ptr<Meter>;
  return *meter;
}

/// The deleter of the allocator behind ours. Every block of ours carries free_block, as raw_deleter() promises.
c10::DeleterFnPtr base_deleter = nullptr;

void free_block(void* ptr) {
  Block block;
  if (table().take(ptr, &block)) {
    if (block.meter) block.meter->sub(block.bytes);
    if (block.session) block.session->sub(block.bytes);
  }
  base_deleter(ptr);
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* base) : base_(base) {}

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr data = base_->allocate(bytes);
    if (data.get() == nullptr) return data;
    TORCH_CHECK(data.get() == data.get_context() && data.compare_exchange_deleter(base_deleter, &free_block),
                "memscale: torch's CPU allocator changed the way it frees; CPU memory cannot be counted.");
    const bool in_session = session_open.load(std::memory_order_relaxed);
    if (!in_session && !current_meter) return data;
    Block block{static_cast<int64_t>(bytes), current_meter, nullptr};
    if (in_session) {
      std::lock_guard<std::mutex> lock(session_mutex());
      block.session = session_meter();
    }
    if (block.meter) block.meter->add(block.bytes);
    if (block.session) block.session->add(block.bytes);
    table().insert(data.get(), std::move(block));
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { base_->copy_data(dest, src, count); }

 private:
  c10::Allocator* base_;
};

/// Puts the counting allocator in front of whatever allocator is installed now.
void install() {
  static std::mutex* mutex = new std::mutex;
  static CountingAllocator* mine = nullptr;
  std::lock_guard<std::mutex> lock(*mutex);
  c10::Allocator* present = c10::GetAllocator(c10::DeviceType::CPU);
  if (mine != nullptr && present == mine) return;
  const c10::DeleterFnPtr deleter = present->raw_deleter();
  TORCH_CHECK(deleter != nullptr && (mine == nullptr || deleter == base_deleter),
              "memscale: another library has replaced torch's CPU allocator by one whose memory cannot be counted.");
  base_deleter = deleter;
  mine = new CountingAllocator(present);
  c10::SetAllocator(c10::DeviceType::CPU, mine);
  TORCH_CHECK(c10::GetAllocator(c10::DeviceType::CPU) == mine,
              "memscale: another library has pinned torch's CPU allocator with a priority, so CPU memory cannot be counted.");
}

}  // namespace

void Meter::add(int64_t bytes) {
  const int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

MeterScope::MeterScope(std::shared_ptr<Meter> meter) : previous_(std::move(current_meter)) {
  if (meter) install();
  current_meter = std::move(meter);
}
MeterScope::~MeterScope() { current_meter = std::move(previous_); }

void accounting_begin() {
  install();
  std::lock_guard<std::mutex> lock(session_mutex());
  TORCH_CHECK(!session_open, "memscale: accounting_begin was called twice; call accounting_end first.");
  session_meter() = std::make_shared<Meter>();
  session_open = true;
}

int64_t accounting_current() {
  std::lock_guard<std::mutex> lock(session_mutex());
  TORCH_CHECK(session_open, "memscale: no accounting is open; call accounting_begin first.");
  return session_meter()->live_bytes();
}

int64_t accounting_peak() {
  std::lock_guard<std::mutex> lock(session_mutex());
  TORCH_CHECK(session_open, "memscale: no accounting is open; call accounting_begin first.");
  return session_meter()->peak_bytes();
}

int64_t accounting_end() {
  std::lock_guard<std::mutex> lock(session_mutex());
  TORCH_CHECK(session_open, "memscale: no accounting is open; call accounting_begin first.");
  session_open = false;
  return session_meter()->peak_bytes();
}

}  // namespace memscale::runtime
