#include "tandem/files/gzip.h"

#include <gtest/gtest.h>

#include "tests/core/error_text.h"
#include "tests/files/archives.h"

namespace tandem {
namespace {

constexpr std::size_t plenty = std::size_t{1} << 30;

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919 % 10007);
  return text;
}

TEST(Gzip, Gunzip_ShortLongAndEmpty) {
  for (const std::string& text : {std::string(), std::string("a"), long_text()})
    EXPECT_EQ(gunzip(gzip(text), plenty, "f"), text);
}

TEST(Gzip, Members_AreConcatenated) {
  EXPECT_EQ(gunzip(gzip("one") + gzip("") + gzip("two"), plenty, "f"), "onetwo");
}

TEST(Gzip, MaxBytes_IsEnforced) {
  EXPECT_EQ(gunzip(gzip("12345"), 5, "f"), "12345");
  EXPECT_EQ(error_text([] { gunzip(gzip("12345"), 4, "f"); }),
            "[gunzip] f: decompresses to more than 4 bytes");
  EXPECT_EQ(error_text([] { gunzip(gzip("123") + gzip("45"), 4, "f"); }),
            "[gunzip] f: decompresses to more than 4 bytes");
  const std::string bomb = gzip(std::string(20'000'000, '\0'));
  EXPECT_LT(bomb.size(), 40'000u);
  EXPECT_EQ(error_text([&] { gunzip(bomb, 1'000'000, "bomb"); }),
            "[gunzip] bomb: decompresses to more than 1000000 bytes");
}

TEST(Gzip, TruncatedAndDamagedStreams_Throw) {
  const std::string bytes = gzip(long_text().substr(0, 3000));
  for (std::size_t size = 2; size < bytes.size(); ++size)
    ASSERT_EQ(error_text([&] { gunzip(bytes.substr(0, size), plenty, "f"); }),
              "[gunzip] f: the gzip data is truncated")
        << size;
  std::string broken = bytes;
  broken[bytes.size() - 6] ^= 1;  // in the CRC
  EXPECT_EQ(error_text([&] { gunzip(broken, plenty, "f"); }), "[gunzip] f: the gzip data is damaged");
  EXPECT_EQ(error_text([&] { gunzip(bytes + "rest", plenty, "f"); }), "[gunzip] f: the gzip data is damaged");
  EXPECT_EQ(error_text([] { gunzip("text", plenty, "f"); }), "[gunzip] f: not a gzip file");
}

}  // namespace
}  // namespace tandem
