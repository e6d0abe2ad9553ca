// TIFF and HEIC, whose libraries may be missing: truncated and oversized files, and what is said without a
// decoder. Their pixels are checked in golden_test.cpp.
#include <gtest/gtest.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

std::string golden(const std::string& name) {
  const std::vector<uint8_t> bytes = read_bytes(golden_folder() / name);
  return {bytes.begin(), bytes.end()};
}

Image decode(const std::string& bytes, const LoadOptions& options = {}) {
  return decode_image(bytes_of(bytes), "x", options);
}

// The kind of the DecodeError, and its text.
std::pair<SkipKind, std::string> problem_of(const std::string& bytes, const LoadOptions& options = {}) {
  try {
    decode(bytes, options);
  } catch (const DecodeError& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "decoded";
  return {};
}

TEST(OptionalFormats, EveryTruncation_Throws) {
  for (const std::string name :
       {"tiff_raw.tif", "tiff_lzw.tif", "tiff_jpeg.tif", "tiff_tiled.tiff", "tiff_gray_16.tif",
        "tiff_1_bit.tif", "tiff_rgb_16.tif", "heic_rgb.heic", "heic_rgba.heic", "heic_lossy.heic"}) {
    if (!can_decode_file(name)) continue;
    const std::string whole = golden(name);
    EXPECT_NO_THROW(decode(whole)) << name;
    // The last bytes of a TIFF may be padding, or texts that no pixel needs.
    const size_t end = name.starts_with("heic") ? whole.size() : whole.size() * 3 / 4;
    for (size_t length = 0; length < end; length += 1 + length / 40)
      EXPECT_THROW(decode(whole.substr(0, length)), DecodeError) << name << " truncated to " << length;
  }
}

TEST(OptionalFormats, TooManyPixels_AreRejectedFromTheHeader) {
  for (const std::string name :
       {"tiff_raw.tif", "tiff_tiled.tiff", "heic_rgb.heic", "heic_rotated_90.heic"}) {
    if (!can_decode_file(name)) continue;
    const auto [kind, text] = problem_of(golden(name), {.max_pixels = 1000});
    EXPECT_EQ(kind, SkipKind::too_large);
    EXPECT_NE(text.find("pixels, the limit is 1000"), std::string::npos) << text;
  }
  // 65536 pixels in each direction, in a file of a few bytes.
  if (!can_decode("TIFF")) return;
  std::string huge = golden("tiff_rgb_16.tif");
  for (const char tag : {'\0', '\1'}) {  // width and height: 256 and 257, one LONG
    const size_t entry = huge.find(std::string{tag, '\1', '\4', '\0', '\1', '\0', '\0', '\0'});
    ASSERT_NE(entry, std::string::npos);
    huge.replace(entry + 8, 4, std::string("\0\0\1\0", 4));
  }
  EXPECT_EQ(problem_of(huge).first, SkipKind::too_large);
}

TEST(OptionalFormats, WithoutADecoder_ErrorSaysSo) {
  const auto [kind, text] = problem_of(std::string("\0\0\0\x1C", 4) + "ftypavif" + std::string(20, '\0'));
  EXPECT_EQ(kind, SkipKind::no_decoder);
  EXPECT_EQ(text, "[decode] x: no decoder for AVIF in this build");
  for (const auto& [name, file] : {std::pair("TIFF", "tiff_raw.tif"), std::pair("HEIC", "heic_rgb.heic")}) {
    if (can_decode(name)) continue;
    EXPECT_EQ(problem_of(golden(file)).first, SkipKind::no_decoder);
    EXPECT_NE(problem_of(golden(file)).second.find(std::string("no decoder for ") + name), std::string::npos);
  }
  EXPECT_EQ(error_text([] { can_decode("GIF"); }),
            "[decode] expected the name of an image format, got 'GIF'");
}

TEST(OptionalFormats, KindOfTiffThatLibtiffCannotConvert_HasNoDecoder) {
  if (!can_decode("TIFF")) GTEST_SKIP() << "no libtiff";
  std::string bytes = golden("tiff_gray_16.tif");  // big-endian
  const size_t bits = bytes.find(std::string("\1\2\0\3\0\0\0\1\0\x10", 10));
  ASSERT_NE(bits, std::string::npos);
  bytes[bits + 9] = 24;
  const auto [kind, text] = problem_of(bytes);
  EXPECT_EQ(kind, SkipKind::no_decoder) << text;
  EXPECT_NE(text.find("no decoder for this kind of TIFF (Sorry, can not handle images with 24-bit samples"),
            std::string::npos)
      << text;
}

TEST(DecodeErrors, HaveAKind) {
  EXPECT_EQ(problem_of("").first, SkipKind::damaged);
  EXPECT_EQ(problem_of("no image").first, SkipKind::damaged);
  EXPECT_EQ(problem_of(golden("png_rgb.png").substr(0, 300)).first, SkipKind::damaged);
  EXPECT_EQ(problem_of(golden("png_rgb.png"), {.max_pixels = 10}).first, SkipKind::too_large);
  EXPECT_EQ(skip_kind(Error("[decode] x: no such file")), SkipKind::unreadable);
  EXPECT_STREQ(name_of(SkipKind::damaged), "damaged");
}

}  // namespace
}  // namespace tandem
