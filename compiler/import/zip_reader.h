// A zip archive, memory-mapped and checked before anything in it is believed.
//
// Needs: nothing of torch. Destroys nothing: the mapping is private, writes to it never reach the file.
// All entries are checked on opening (count, names, sizes, compression, position inside the file, no two overlapping), so that
// later reads only look up what is known to be sound. A file that another process shrinks while it is mapped is not defended
// against, as with any memory-mapped reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::import {

/// A file mapped into memory, read-only on disk, copy-on-write in memory.
class MappedFile {
 public:
  /// Errors: kUsage (no such file, a folder, no permission).
  static Expected<std::shared_ptr<MappedFile>> open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  char* data() { return static_cast<char*>(data_); }
  size_t size() const { return size_; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

struct ZipLimits {
  uint64_t entry_count = 1u << 20;
  uint64_t name_bytes = 4096;
  uint64_t inflated_entry_bytes = uint64_t{1} << 30;  // one deflated entry, unpacked
  uint64_t inflated_total_bytes = uint64_t{4} << 30;  // all deflated entries together
  uint64_t ratio = 200;                               // unpacked to packed, for deflated entries above 1 MiB
};

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of the data, in the file
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;  // unpacked
  uint32_t crc32 = 0;  // 0: not stated by the writer
  bool deflated = false;
};

class ZipReader {
 public:
  /// Errors: kUnsafe (broken or hostile), kUnsupported (encrypted, split, or packed by a method other than deflate).
  static Expected<ZipReader> open(std::shared_ptr<MappedFile> file, const ZipLimits& limits = {});

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;

  /// The entry's contents, unpacked, its checksum compared. Error kUnsafe: larger than `limit`, does not unpack to the stated
  /// size, or another checksum.
  Expected<std::string> read(const ZipEntry& entry, uint64_t limit) const;

  /// The bytes of a stored (not deflated) entry, in place.
  char* stored(const ZipEntry& entry) const { return file_->data() + entry.offset; }
  const std::shared_ptr<MappedFile>& file() const { return file_; }

  /// Compares the checksum of a stored entry with the one the writer stated, if it stated one.
  bool checksum_matches(const ZipEntry& entry) const;

 private:
  std::shared_ptr<MappedFile> file_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace memscale::import
