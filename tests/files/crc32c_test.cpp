#include "tandem/files/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(Crc32c, KnownVectors_Match) {  // RFC 3720, B.4, and the usual check value
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) {
    up += static_cast<char>(i);
    down += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(crc32c(down), 0x113FDB5Cu);
}

TEST(Crc32c, EveryLengthAndAlignment_EqualsBitwiseDivision) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes += static_cast<char>(37 * i * i + 11 * i);
  for (std::size_t begin = 0; begin < 8; ++begin)
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      std::uint32_t crc = ~0u;
      for (const char c : bytes.substr(begin, size)) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
      }
      ASSERT_EQ(crc32c(std::string_view(bytes).substr(begin, size)), ~crc) << begin << " " << size;
    }
}

}  // namespace
}  // namespace tandem
