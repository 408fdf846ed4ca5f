// Writes zip archives for tests, sound ones and ones whose headers lie.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

struct ZipItem {
  ZipItem() = default;
  ZipItem(std::string n, std::string b) : name(std::move(n)), bytes(std::move(b)) {}

  std::string name, bytes;
  bool deflate = false;
  // Lies; the defaults tell the truth.
  int64_t stated_bytes = -1, stated_offset = -1;
  bool state_checksum = false;  // a checksum of 0 means: not stated
  uint16_t method = 0xffff, flags = 0;
  std::string local_name;
};

inline std::string little(uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string write_zip(const std::vector<ZipItem>& items, bool zip64 = false) {
  std::string file, directory;
  for (const ZipItem& item : items) {
    std::string data = item.deflate ? deflated(item.bytes) : item.bytes;
    uint64_t bytes = item.stated_bytes < 0 ? item.bytes.size() : static_cast<uint64_t>(item.stated_bytes);
    uint64_t packed = item.deflate ? data.size() : bytes;
    uint64_t offset = item.stated_offset < 0 ? file.size() : static_cast<uint64_t>(item.stated_offset);
    uint32_t crc = item.state_checksum
                       ? static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(item.bytes.data()), item.bytes.size()))
                       : 0;
    uint16_t method = item.method != 0xffff ? item.method : item.deflate ? 8 : 0;
    std::string common = little(20, 2) + little(item.flags, 2) + little(method, 2) + little(0, 4) + little(crc, 4);
    std::string local_name = item.local_name.empty() ? item.name : item.local_name;
    file += little(0x04034b50, 4) + common + little(packed, 4) + little(bytes, 4) + little(local_name.size(), 2) + little(0, 2) +
            local_name + data;
    std::string extra = zip64 ? little(1, 2) + little(24, 2) + little(bytes, 8) + little(packed, 8) + little(offset, 8) : "";
    directory += little(0x02014b50, 4) + little(20, 2) + common +
                 (zip64 ? little(0xffffffff, 4) + little(0xffffffff, 4) : little(packed, 4) + little(bytes, 4)) +
                 little(item.name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 8) +
                 (zip64 ? little(0xffffffff, 4) : little(offset, 4)) + item.name + extra;
  }
  uint64_t start = file.size(), count = items.size();
  file += directory;
  if (zip64) {
    uint64_t end64 = file.size();
    file += little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
            little(count, 8) + little(directory.size(), 8) + little(start, 8);
    file += little(0x07064b50, 4) + little(0, 4) + little(end64, 8) + little(1, 4);
    return file + little(0x06054b50, 4) + little(0, 4) + little(0xffff, 2) + little(0xffff, 2) + little(0xffffffff, 4) +
           little(0xffffffff, 4) + little(0, 2);
  }
  return file + little(0x06054b50, 4) + little(0, 4) + little(count, 2) + little(count, 2) + little(directory.size(), 4) +
         little(start, 4) + little(0, 2);
}
