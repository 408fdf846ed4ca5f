// Reads the central directory of a zip archive (zip64 included) and checks it against the local headers.
// Needs zlib for deflated entries and checksums. Destroys nothing.
#include "compiler/import/zip_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace memscale::import {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kZip64End = 0x06064b50, kZip64Locator = 0x07064b50;
constexpr uint64_t kRatioFloorBytes = 1u << 20;

Error unsafe(std::string message) {
  return {Exit::kUnsafe, "the zip archive is broken or hostile: " + std::move(message),
          "copy or download the file again; if it comes from elsewhere, do not trust it"};
}

/// Little-endian reads that cannot leave the file.
class Cursor {
 public:
  Cursor(std::string_view bytes, uint64_t position) : bytes_(bytes), position_(position) {}
  bool has(uint64_t n) const { return position_ <= bytes_.size() && n <= bytes_.size() - position_; }
  uint64_t position() const { return position_; }
  void skip(uint64_t n) { position_ += n; }
  std::string_view text(uint64_t n) {
    std::string_view t = bytes_.substr(position_, n);
    position_ += n;
    return t;
  }
  uint64_t number(int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= uint64_t{static_cast<unsigned char>(bytes_[position_ + i])} << (8 * i);
    position_ += width;
    return value;
  }

 private:
  std::string_view bytes_;
  uint64_t position_;
};

struct Directory {
  uint64_t offset = 0, bytes = 0, count = 0, end = 0;  // end: where the record that describes the directory begins
};

std::optional<uint64_t> find_end_record(std::string_view file) {
  if (file.size() < 22) return std::nullopt;
  uint64_t lowest = file.size() > 22 + 0xffff ? file.size() - 22 - 0xffff : 0;
  for (uint64_t at = file.size() - 22;; --at) {
    Cursor c(file, at);
    if (c.number(4) == kEnd) {
      Cursor comment(file, at + 20);
      if (at + 22 + comment.number(2) == file.size()) return at;
    }
    if (at == lowest) return std::nullopt;
  }
}

Expected<Directory> read_end(std::string_view file) {
  std::optional<uint64_t> at = find_end_record(file);
  if (!at) return unsafe("it has no end record: the file is truncated, or something was appended to it");
  Cursor c(file, *at + 4);
  uint64_t disk = c.number(2), directory_disk = c.number(2), here = c.number(2);
  Directory d;
  d.count = c.number(2);
  d.bytes = c.number(4);
  d.offset = c.number(4);
  d.end = *at;
  bool wide = d.count == 0xffff || d.bytes == 0xffffffff || d.offset == 0xffffffff;
  if (!wide) {
    if (disk != 0 || directory_disk != 0 || here != d.count) return unsafe("it claims to be one part of a split archive");
    return d;
  }
  if (*at < 20) return unsafe("the zip64 locator is missing");
  Cursor locator(file, *at - 20);
  if (locator.number(4) != kZip64Locator) return unsafe("the zip64 locator is missing");
  locator.skip(4);
  uint64_t end64 = locator.number(8);
  Cursor e(file, end64);
  if (end64 > *at - 20 || !e.has(56) || *at - 20 - end64 < 56 || e.number(4) != kZip64End) {
    return unsafe("the zip64 end record is not where the locator says");
  }
  e.skip(8 + 2 + 2);
  uint64_t disk64 = e.number(4), directory_disk64 = e.number(4), here64 = e.number(8);
  d.count = e.number(8);
  d.bytes = e.number(8);
  d.offset = e.number(8);
  d.end = end64;
  if (disk64 != 0 || directory_disk64 != 0 || here64 != d.count) return unsafe("it claims to be one part of a split archive");
  return d;
}

/// Why a name is not accepted; empty if it is.
std::string name_fault(std::string_view name, uint64_t limit) {
  if (name.empty()) return "an entry without a name";
  if (name.size() > limit) return "an entry name of " + std::to_string(name.size()) + " bytes";
  for (unsigned char c : name) {
    if (c < 0x20 || c == 0x7f || c == '\\') return "an entry name with a control character or a backslash";
  }
  if (name.front() == '/' || (name.size() > 1 && name[1] == ':')) return "the absolute entry name '" + std::string(name) + "'";
  size_t begin = 0;
  while (begin <= name.size()) {
    size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") return "the entry name '" + std::string(name) + "', which leaves the archive";
    begin = end + 1;
  }
  return "";
}

/// Applies the zip64 extra field to the values that the header left at their maximum.
bool apply_zip64(std::string_view extra, uint64_t& bytes, uint64_t& packed, uint64_t& offset) {
  bool need_bytes = bytes == 0xffffffff, need_packed = packed == 0xffffffff, need_offset = offset == 0xffffffff;
  if (!need_bytes && !need_packed && !need_offset) return true;
  Cursor c(extra, 0);
  while (c.has(4)) {
    uint64_t id = c.number(2), size = c.number(2);
    if (!c.has(size)) return false;
    if (id != 1) {
      c.skip(size);
      continue;
    }
    if (size < 8u * (need_bytes + need_packed + need_offset)) return false;
    if (need_bytes) bytes = c.number(8);
    if (need_packed) packed = c.number(8);
    if (need_offset) offset = c.number(8);
    return true;
  }
  return false;
}

}  // namespace

Expected<std::shared_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  auto fail = [&](const std::string& what, const std::string& help) {
    return Error{Exit::kUsage, "cannot open '" + path + "': " + what, help};
  };
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(std::strerror(errno), errno == ENOENT ? "check the path" : "check the file's permissions");
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    if (S_ISDIR(status.st_mode))
      return fail("it is a folder", "name the archive, a file written by torch.jit.save or torch.export.save");
    return fail("it is no regular file", "name the archive, a file written by torch.jit.save or torch.export.save");
  }
  size_t size = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
      int reason = errno;
      ::close(fd);
      return fail(std::string("mapping it failed: ") + std::strerror(reason), "");
    }
  }
  ::close(fd);
  return std::shared_ptr<MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Expected<ZipReader> ZipReader::open(std::shared_ptr<MappedFile> mapped, const ZipLimits& limits) {
  std::string_view file = mapped->bytes();
  Expected<Directory> end = read_end(file);
  if (!end) return end.error();
  const Directory& d = *end;
  if (d.offset > d.end || d.bytes > d.end - d.offset) return unsafe("its directory lies outside the file");
  if (d.count > limits.entry_count) return unsafe("it claims " + std::to_string(d.count) + " entries");
  if (d.count > d.bytes / 46)
    return unsafe("its directory is too small for the " + std::to_string(d.count) + " entries it claims");

  ZipReader reader;
  reader.file_ = mapped;
  reader.entries_.reserve(d.count);
  struct Extent {
    uint64_t begin, end;
    size_t entry;
  };
  std::vector<Extent> extents;
  uint64_t inflated_total = 0;
  Cursor c(file.substr(0, d.offset + d.bytes), d.offset);
  for (uint64_t i = 0; i < d.count; ++i) {
    if (!c.has(46) || c.number(4) != kCentralHeader) return unsafe("its directory ends early");
    c.skip(4);
    uint64_t flags = c.number(2), method = c.number(2);
    c.skip(4);
    ZipEntry entry;
    entry.crc32 = static_cast<uint32_t>(c.number(4));
    entry.packed_bytes = c.number(4);
    entry.bytes = c.number(4);
    uint64_t name_bytes = c.number(2), extra_bytes = c.number(2), comment_bytes = c.number(2);
    c.skip(8);
    uint64_t header = c.number(4);
    if (!c.has(name_bytes + extra_bytes + comment_bytes)) return unsafe("its directory ends early");
    entry.name = std::string(c.text(name_bytes));
    std::string_view extra = c.text(extra_bytes);
    c.skip(comment_bytes);
    if (std::string fault = name_fault(entry.name, limits.name_bytes); !fault.empty()) return unsafe("it holds " + fault);
    const std::string who = "entry '" + entry.name + "' ";
    if (!apply_zip64(extra, entry.bytes, entry.packed_bytes, header)) return unsafe(who + "lacks its zip64 sizes");
    if (flags & 1) return Error{Exit::kUnsupported, who + "is encrypted", "unpack and pack the archive again without encryption"};
    if (method != 0 && method != 8) {
      return Error{Exit::kUnsupported, who + "is packed by method " + std::to_string(method) + ": expected stored or deflate",
                   "write the archive with torch.jit.save or torch.export.save"};
    }
    entry.deflated = method == 8;
    if (!entry.deflated && entry.bytes != entry.packed_bytes) return unsafe(who + "is stored but states two sizes");

    Cursor local(file.substr(0, d.offset), header);
    if (!local.has(30) || local.number(4) != kLocalHeader) return unsafe(who + "points to no local header");
    local.skip(2);
    uint64_t local_flags = local.number(2), local_method = local.number(2);
    local.skip(16);
    uint64_t local_name_bytes = local.number(2), local_extra_bytes = local.number(2);
    if (!local.has(local_name_bytes + local_extra_bytes)) return unsafe(who + "has a local header outside the file");
    if (local.text(local_name_bytes) != entry.name || local_method != method || ((local_flags ^ flags) & 1)) {
      return unsafe(who + "has another name or method in its local header");
    }
    local.skip(local_extra_bytes);
    entry.offset = local.position();
    if (!local.has(entry.packed_bytes))
      return unsafe(who + "reaches beyond the file: expected " + std::to_string(entry.packed_bytes) + " bytes");
    if (entry.deflated) {
      inflated_total += entry.bytes;
      if (entry.bytes > limits.inflated_entry_bytes || inflated_total > limits.inflated_total_bytes ||
          (entry.bytes > kRatioFloorBytes && entry.bytes / limits.ratio > entry.packed_bytes)) {
        return unsafe(who + "unpacks " + std::to_string(entry.packed_bytes) + " bytes to " + std::to_string(entry.bytes) +
                      ", more than is allowed");
      }
    }
    extents.push_back({header, entry.offset + entry.packed_bytes, reader.entries_.size()});
    if (!reader.index_.emplace(entry.name, reader.entries_.size()).second) return unsafe(who + "occurs twice");
    reader.entries_.push_back(std::move(entry));
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      return unsafe("entries '" + reader.entries_[extents[i - 1].entry].name + "' and '" +
                    reader.entries_[extents[i].entry].name + "' overlap");
    }
  }
  return reader;
}

const ZipEntry* ZipReader::find(const std::string& name) const {
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

bool ZipReader::checksum_matches(const ZipEntry& entry) const {
  if (entry.crc32 == 0) return true;
  return ::crc32_z(0, reinterpret_cast<const Bytef*>(stored(entry)), entry.packed_bytes) == entry.crc32;
}

Expected<std::string> ZipReader::read(const ZipEntry& entry, uint64_t limit) const {
  if (entry.bytes > limit) {
    return unsafe("entry '" + entry.name + "' holds " + std::to_string(entry.bytes) + " bytes, expected at most " +
                  std::to_string(limit));
  }
  std::string out;
  if (!entry.deflated) {
    out.assign(stored(entry), entry.bytes);
  } else {
    out.resize(entry.bytes);
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Error{Exit::kInternal, "zlib refused to start", ""};
    stream.next_in = reinterpret_cast<Bytef*>(stored(entry));
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(entry.packed_bytes, UINT32_MAX));
    // A byte more than stated, so that a stream that goes on is noticed.
    char spare = 0;
    stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &spare : out.data());
    stream.avail_out = static_cast<uInt>(out.empty() ? 1 : out.size());
    int state = ::inflate(&stream, Z_FINISH);
    uint64_t produced = stream.total_out;
    ::inflateEnd(&stream);
    if (state != Z_STREAM_END || produced != entry.bytes)
      return unsafe("entry '" + entry.name + "' does not unpack to the stated size");
  }
  if (entry.crc32 != 0 && ::crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()) != entry.crc32) {
    return unsafe("entry '" + entry.name + "' has another checksum than stated: its bytes were changed");
  }
  return out;
}

}  // namespace memscale::import
