// Makes gzip, tar and zip data for tests, valid and invalid.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// One file of a tar archive, padded. `size` overrides the size in the header.
inline std::string tar_entry(const std::string& name, const std::string& contents, std::string size = "",
                             char type = '0', const std::string& prefix = "") {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  if (size.empty()) {
    char digits[13];
    std::snprintf(digits, sizeof digits, "%011zo", contents.size());
    size = digits;
  }
  header.replace(124, size.size(), size);
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(345, prefix.size(), prefix);
  unsigned sum = 8 * ' ';
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  header[155] = ' ';
  return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

// Raw deflate data, as in zip archives.
inline std::string deflated(const std::string& bytes) {
  const std::string packed = gzip(bytes);
  return packed.substr(10, packed.size() - 18);  // without the header and trailer of gzip
}

inline std::string little_endian(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// An entry of a zip archive. The optional members override values in its headers.
struct ZippedFile {
  std::string name, contents;
  bool deflated = false;
  bool descriptor = false;  // sizes follow the data
  std::uint16_t flags = 0;
  std::optional<std::uint64_t> size, offset;
  std::optional<std::uint32_t> crc;
  std::optional<std::uint16_t> method;
  std::uint32_t mode = 0;  // as of Unix
};
struct ZipOptions {
  bool zip64 = false;  // all values in zip64 fields
  std::string comment;
};

inline std::string zip(const std::vector<ZippedFile>& files, const ZipOptions& options = {}) {
  constexpr std::uint64_t elsewhere = 0xFFFFFFFF;
  std::string archive, directory;
  for (const ZippedFile& file : files) {
    const std::string data = file.deflated ? deflated(file.contents) : file.contents;
    const std::uint64_t size = file.size.value_or(file.contents.size());
    const auto crc = file.crc.value_or(static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(file.contents.data()), file.contents.size())));
    const std::uint64_t offset = file.offset.value_or(archive.size());
    const std::uint16_t flags = file.descriptor ? file.flags | 8 : file.flags;
    const std::uint16_t method = file.method.value_or(file.deflated ? 8 : 0);
    const std::string kind =
        little_endian(45, 2) + little_endian(flags, 2) + little_endian(method, 2) + little_endian(0, 4);
    const auto sizes = [&](bool deferred) {
      const std::uint64_t packed = options.zip64 ? elsewhere : data.size();
      return deferred ? std::string(12, '\0')
                      : little_endian(crc, 4) + little_endian(packed, 4) +
                            little_endian(options.zip64 ? elsewhere : size, 4);
    };
    const std::string wide = little_endian(size, 8) + little_endian(data.size(), 8);
    const std::string local_extra =
        options.zip64 && !file.descriptor ? little_endian(1, 2) + little_endian(16, 2) + wide : "";
    const std::string extra =
        options.zip64 ? little_endian(1, 2) + little_endian(24, 2) + wide + little_endian(offset, 8) : "";
    archive += "PK\x03\x04" + kind + sizes(file.descriptor) + little_endian(file.name.size(), 2) +
               little_endian(local_extra.size(), 2) + file.name + local_extra + data;
    if (file.descriptor)
      archive +=
          "PK\x07\x08" + little_endian(crc, 4) + little_endian(data.size(), 4) + little_endian(size, 4);
    directory += "PK\x01\x02" + little_endian(45, 2) + kind + sizes(false) +
                 little_endian(file.name.size(), 2) + little_endian(extra.size(), 2) + std::string(6, '\0') +
                 little_endian(std::uint64_t{file.mode} << 16, 4) +
                 little_endian(options.zip64 ? elsewhere : offset, 4) + file.name + extra;
  }
  const std::size_t at = archive.size(), count = files.size();
  archive += directory;
  if (options.zip64) {
    const std::size_t end = archive.size();
    archive += "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
               std::string(8, '\0') + little_endian(count, 8) + little_endian(count, 8) +
               little_endian(directory.size(), 8) + little_endian(at, 8);
    archive += "PK\x06\x07" + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4);
  }
  return archive + "PK\x05\x06" + std::string(4, '\0') + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(directory.size(), 4) + little_endian(at, 4) +
         little_endian(options.comment.size(), 2) + options.comment;
}

}  // namespace tandem
