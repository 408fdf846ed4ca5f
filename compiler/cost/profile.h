// What a target's hardware does, as targets/*.yaml say it ("memscale.target/1").
//
// Units are in the names: GB is 10^9 bytes. Loading is strict: an unknown key, a missing one, a wrong type or a value out of
// range is an error with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "compiler/support/error.h"

namespace memscale::cost {

struct Profile {
  std::string name;
  std::string device;              // "cpu" or "cuda"
  int32_t compute_capability = 0;  // 90 for sm_90; 0: not said. Lowering for CUDA needs it
  std::map<std::string, double>
      tflops;                  // dtype -> achieved matmul rate; float32 must be there and stands for dtypes that are not
  double memory_gb_per_s = 0;  // reads and writes both counted
  double launch_us = 0;        // per kernel, as eager pays it
  int64_t allocator_rounding_bytes = 1;  // the allocator counts multiples of this
  int64_t storage_alignment_bytes = 64;
  int64_t device_memory_bytes = 0;
  int64_t reserve_bytes = 0;      // context, collectives, fragmentation; reported apart
  int32_t threads = 1;            // intra-op threads; 1 on cuda
  double to_device_gb_per_s = 0;  // from the host tier, alone
  double from_device_gb_per_s = 0;
  double duplex_gb_per_s = 0;  // each way, both at once
  double copy_slowdown = 0;    // share of compute lost beside a copy
  double pin_s_per_gib = 0;
  double disk_read_gb_per_s = 0;
  double disk_write_gb_per_s = 0;

  /// Matmul FLOP/s for a dtype; float32's where the profile has no entry.
  double flops_per_s(const std::string& dtype) const;
  /// As the allocator counts it.
  int64_t round_bytes(int64_t bytes) const;
};

Expected<Profile> parse_profile(std::string_view text, const std::string& where);
Expected<Profile> load_profile(const std::string& path);

}  // namespace memscale::cost
