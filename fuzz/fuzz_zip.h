// Zip archives and deflate data for the mutators.
#pragma once

#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz_mutator.h"

namespace tandem {

// What raw deflate data decompresses to, at most `max_bytes`.
inline std::string inflated(const std::uint8_t* data, std::size_t size, int window_bits,
                            std::size_t max_bytes = 1 << 13) {
  z_stream stream{};
  std::string result(max_bytes, '\0');
  if (inflateInit2(&stream, window_bits) != Z_OK) return {};
  stream.next_in = const_cast<std::uint8_t*>(data);
  stream.avail_in = static_cast<unsigned>(size);
  stream.next_out = reinterpret_cast<std::uint8_t*>(result.data());
  stream.avail_out = static_cast<unsigned>(max_bytes);
  inflate(&stream, Z_FINISH);
  result.resize(max_bytes - stream.avail_out);
  inflateEnd(&stream);
  return result;
}

inline std::uint32_t crc_of(const std::uint8_t* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32(0, data, static_cast<unsigned>(size)));
}

// Calls f(header in the directory, local header, begin and size of the data) for every entry that lies
// inside.
template <class F>
void for_each_zip_entry(std::uint8_t* data, std::size_t size, const F& f) {
  constexpr std::size_t local_size = 30, central_size = 46;
  for (std::size_t at = 0; at + central_size <= size; ++at) {
    if (little_endian(data + at, 4) != 0x02014b50) continue;
    const std::size_t local = little_endian(data + at + 42, 4);
    if (local >= size || size - local < local_size) continue;
    const std::size_t begin =
        local + local_size + little_endian(data + local + 26, 2) + little_endian(data + local + 28, 2);
    const std::size_t bytes = little_endian(data + at + 20, 4);
    if (begin <= size && bytes <= size - begin) f(data + at, data + local, data + begin, bytes);
  }
}

// Makes the CRC and the sizes in the headers those of the contents.
inline void repair_zip(std::uint8_t* data, std::size_t size) {
  for_each_zip_entry(
      data, size,
      [](std::uint8_t* central, std::uint8_t* local, const std::uint8_t* begin, std::size_t bytes) {
        std::uint32_t crc = crc_of(begin, bytes);
        std::size_t length = bytes;
        if (little_endian(central + 10, 2) == 8) {
          const std::string contents = inflated(begin, bytes, -MAX_WBITS);
          crc = crc_of(reinterpret_cast<const std::uint8_t*>(contents.data()), contents.size());
          length = contents.size();
        }
        std::copy_n(central + 8, 4, local + 6);  // flags and method
        put_little_endian(central + 16, crc, 4);
        put_little_endian(central + 24, length, 4);
        put_little_endian(local + 14, crc, 4);
        put_little_endian(local + 18, bytes, 4);
        put_little_endian(local + 22, length, 4);
      });
}

using ZipContents = std::vector<std::pair<std::string, std::string>>;  // names and contents

inline ZipContents unpacked_zip(std::uint8_t* data, std::size_t size) {
  ZipContents all;
  for_each_zip_entry(data, size,
                     [&](const std::uint8_t* central, const std::uint8_t* local, const std::uint8_t* begin,
                         std::size_t bytes) {
                       const std::size_t name_bytes = std::min<std::size_t>(
                           little_endian(central + 28, 2), static_cast<std::size_t>(begin - local) - 30);
                       all.emplace_back(std::string(reinterpret_cast<const char*>(local) + 30, name_bytes),
                                        little_endian(central + 10, 2) == 8
                                            ? inflated(begin, bytes, -MAX_WBITS, 4096)
                                            : std::string(reinterpret_cast<const char*>(begin), bytes));
                     });
  return all;
}

// An archive of stored entries.
inline std::string packed_zip(const ZipContents& all) {
  std::string archive, directory;
  const auto put = [](std::string& to, std::uint64_t value, std::size_t bytes) {
    for (; bytes > 0; --bytes, value >>= 8) to += static_cast<char>(value & 0xFF);
  };
  for (const auto& [name, contents] : all) {
    const std::size_t local_at = archive.size();
    std::string
        common;  // version, flags, method, time, date, CRC, sizes, length of the name and of more fields
    put(common, 20, 2);
    put(common, 0, 8);
    put(common, crc_of(reinterpret_cast<const std::uint8_t*>(contents.data()), contents.size()), 4);
    put(common, contents.size(), 4);
    put(common, contents.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    archive += "PK\x03\x04" + common + name + contents;
    directory += "PK\x01\x02";
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 10);
    put(directory, local_at, 4);
    directory += name;
  }
  std::string end = "PK\x05\x06";
  put(end, 0, 4);
  put(end, all.size(), 2);
  put(end, all.size(), 2);
  put(end, directory.size(), 4);
  put(end, archive.size(), 4);
  put(end, 0, 2);
  return archive + directory + end;
}

}  // namespace tandem
