// Makes gzip and tar bytes for tests.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

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

// One file of a tar archive, padded; `size` is what the header says.
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

}  // namespace tandem
