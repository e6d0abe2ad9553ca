#include "tandem/files/idx.h"

#include <gtest/gtest.h>

#include "tests/files/archives.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

using namespace std::string_literals;

std::string error_of(const std::string& bytes) {
  return error_text([&] { parse_idx(bytes, "f"); });
}

const std::string matrix = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef";

TEST(Idx, RawOrGzip_IsDetectedByContent) {
  const TempFolder folder;
  put_bytes(folder / "raw.gz", matrix);
  put_bytes(folder / "packed", gzip(matrix));
  for (const char* name : {"raw.gz", "packed"}) {
    const Tensor tensor = read_idx(folder / name);
    EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
    EXPECT_EQ(tensor.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  }
}

TEST(Idx, OtherElementTypes_AreBigEndian) {
  EXPECT_EQ(parse_idx("\0\0\x0C\x01\0\0\0\x02\0\0\x01\x02\xFF\xFF\xFF\xFE"s, "f").to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{258, -2}));
  EXPECT_EQ(parse_idx("\0\0\x0D\x01\0\0\0\x01\xC0\x20\0\0"s, "f").item<float>(), -2.5f);
  EXPECT_EQ(parse_idx("\0\0\x0E\x01\0\0\0\x01\x40\x04\0\0\0\0\0\0"s, "f").item<double>(), 2.5);
}

TEST(Idx, Empty_And_Write) {
  const TempFolder folder;
  EXPECT_EQ(parse_idx("\0\0\x08\x03\0\0\0\0\0\0\0\x1C\0\0\0\x1C"s, "f").shape(), (Shape{0, 28, 28}));
  const Tensor tensor = Tensor::from(std::vector<std::uint8_t>{'a', 'd', 'b', 'e', 'c', 'f'}, {3, 2});
  write_idx(folder / "a", tensor.transpose());
  EXPECT_EQ(get_bytes(folder / "a"), matrix);
  EXPECT_EQ(error_text([&] { write_idx(folder / "b", Tensor::empty({2}, DType::f32)); }),
            "[idx] expected u8 elements of rank 1 or more, got [2] of f32");
}

TEST(Idx, TruncatedOrOverlong_Throws) {
  EXPECT_EQ(error_of("\0\0\x08"s), "[idx] f: expected at least 4 bytes, got 3");
  EXPECT_EQ(error_of(matrix.substr(0, 10)), "[idx] f: the file is truncated: 10 bytes, its header needs 12");
  EXPECT_EQ(error_of(matrix.substr(0, 17)),
            "[idx] f: the file is truncated: [2, 3] of u8 needs 6 bytes after the header, got 5");
  EXPECT_EQ(error_of(matrix + "xy"), "[idx] f: 2 bytes follow the [2, 3] elements of its header");
  EXPECT_EQ(error_of(gzip(matrix).substr(0, 20)), "[gunzip] f: the gzip data is truncated");
}

TEST(Idx, InvalidHeaders_Throw) {
  EXPECT_EQ(error_of("plain text"), "[idx] f: not an idx file");
  EXPECT_EQ(error_of("\0\0\x0B\x01\0\0\0\0"s),
            "[idx] f: expected an element type of 0x08 (u8), 0x0C (i32), 0x0D (f32), 0x0E (f64), got 0x0b");
  EXPECT_EQ(error_of("\0\0\x08\0"s), "[idx] f: expected 1 to 8 dimensions, got 0");
  EXPECT_EQ(error_of("\0\0\x08\x09"s + std::string(40, '\1')), "[idx] f: expected 1 to 8 dimensions, got 9");
  EXPECT_EQ(error_of("\0\0\x0E\x03"s + std::string(12, '\xFF')),
            "[idx] f: the file is truncated: [4294967295, 4294967295, 4294967295] of f64 needs "
            "4611686018427387904 bytes after the header, got 0");
  // The product of the sizes is 0, but a partial product overflows.
  EXPECT_EQ(parse_idx("\0\0\x08\x02\0\0\0\0"s + std::string(4, '\xFF'), "f").numel(), 0);
}

}  // namespace
}  // namespace tandem
