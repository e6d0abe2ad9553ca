// Cases that the golden files do not cover: format detection, bad input of every kind, limits, and BMP and
// PNM files built here.
#include "tandem/image/decode.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

using namespace std::string_literals;

Image decode(const std::string& bytes, const LoadOptions& options = {}) {
  return decode_image(bytes_of(bytes), "x", options);
}

std::string decode_error(const std::string& bytes, const LoadOptions& options = {}) {
  return error_text([&] { decode(bytes, options); });
}

std::string golden(const std::string& name) {
  const std::vector<uint8_t> bytes = read_bytes(golden_folder() / name);
  return {bytes.begin(), bytes.end()};
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i) & 255);
  return out;
}

std::string big(uint32_t value) {
  const std::string reversed = little(value, 4);
  return {reversed.rbegin(), reversed.rend()};
}

struct BmpHeader {
  int32_t width = 2, height = 2;
  uint32_t bits = 24, compression = 0, colors = 0;
  std::string masks = "";
  std::string palette = "";
};

std::string bmp(const BmpHeader& h, const std::string& raster) {
  const uint32_t header_bytes = h.masks.size() > 12 ? 40 + uint32_t(h.masks.size()) : 40;
  const uint32_t offset = 14 + 40 + uint32_t(h.masks.size() + h.palette.size());
  return "BM" + little(0, 8) + little(offset, 4) + little(header_bytes, 4) + little(uint32_t(h.width), 4) +
         little(uint32_t(h.height), 4) + little(1, 2) + little(h.bits, 2) + little(h.compression, 4) +
         std::string(12, '\0') + little(h.colors, 4) + little(0, 4) + h.masks + h.palette + raster;
}

TEST(Decode, WrongFileName_FormatIsDetectedFromTheContent) {
  const TempFolder folder;
  put_bytes(folder / "photo.jpg", golden("png_rgb.png"));
  EXPECT_EQ(load_image(folder / "photo.jpg"), load_image(golden_folder() / "png_rgb.png"));
}

TEST(Decode, ReadsFromAPipe) {
  const TempFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { put_bytes(pipe, golden("pnm_rgb.ppm")); });
  const Image image = load_image(pipe);
  writer.join();
  EXPECT_EQ(image, load_image(golden_folder() / "pnm_rgb.ppm"));
}

TEST(DecodeErrors, NameTheFileAndTheCause) {
  const TempFolder folder;
  const auto load_error = [&](const std::filesystem::path& path) {
    return error_text([&] { load_image(path); });
  };
  const std::string at = folder.path().string();
  EXPECT_EQ(load_error(folder / "none.jpg"), "[decode] " + at + "/none.jpg: no such file");
  EXPECT_EQ(load_error(folder.path()), "[decode] " + at + ": expected an image file, got a folder");
  put_bytes(folder / "empty.png", "");
  EXPECT_EQ(load_error(folder / "empty.png"), "[decode] " + at + "/empty.png: the file is empty");
  put_bytes(folder / "notes.png", "Dear diary, this is not a picture.");
  EXPECT_EQ(
      load_error(folder / "notes.png"),
      "[decode] " + at +
          "/notes.png: not an image of a known format (JPEG, PNG, WebP, BMP, PBM, PGM, PPM, TIFF, HEIC)");
  EXPECT_EQ(load_error(folder / "notes.png/x.png"),
            "[decode] " + at + "/notes.png/x.png: cannot be opened: Not a directory");
}

TEST(DecodeErrors, UnreadableFile_Throws) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TempFolder folder;
  put_bytes(folder / "secret.png", golden("png_rgb.png"));
  std::filesystem::permissions(folder / "secret.png", std::filesystem::perms::none);
  EXPECT_NE(error_text([&] { load_image(folder / "secret.png"); }).find("Permission denied"),
            std::string::npos);
}

TEST(DecodeErrors, EndlessDevice_IsRejectedFromItsFirstBytes) {
  EXPECT_NE(error_text([] { load_image("/dev/zero"); }).find("not an image"), std::string::npos);
}

TEST(DecodeErrors, TextThatBeginsLikeAnImage_Throws) {
  for (const std::string text :
       {"BMW builds cars and motorcycles", "P5-32 is a pump", "P", "B", "\xFF\xD8", "PK\3\4"})
    EXPECT_NE(decode_error(text).find("not an image"), std::string::npos) << text;
}

TEST(DecodeErrors, EveryTruncationOfEveryFormat_Throws) {
  for (const std::string name :
       {"jpeg_420.jpg", "jpeg_progressive.jpg", "jpeg_cmyk.jpg", "png_rgb.png", "png_interlaced_rgb.png",
        "bmp_24.bmp", "bmp_palette.bmp", "bmp_rle8.bmp", "bmp_rle4.bmp", "pnm_rgb.ppm", "pnm_bit.pbm"}) {
    const std::string whole = golden(name);
    EXPECT_NO_THROW(decode(whole)) << name;
    for (size_t length = 0; length < whole.size(); length += 1 + length / 50)
      EXPECT_THROW(decode(whole.substr(0, length)), Error) << name << " truncated to " << length;
    for (size_t missing = 1; missing <= 3; ++missing)
      EXPECT_THROW(decode(whole.substr(0, whole.size() - missing)), Error)
          << name << " without the last " << missing;
  }
}

TEST(DecodeWebp, EveryTruncation_Throws) {
  if (!can_decode("WebP")) GTEST_SKIP() << "no libwebp";
  for (const std::string name :
       {"webp_rgb.webp", "webp_rgba.webp", "webp_rgba_lossless.webp", "exif_6.webp"}) {
    const std::string whole = golden(name);
    EXPECT_EQ(decode(whole + "trailing"), decode(whole)) << name;
    for (size_t length = 0; length < whole.size(); ++length)
      EXPECT_THROW(decode(whole.substr(0, length)), Error) << name << " truncated to " << length;
  }
  EXPECT_EQ(decode_error(golden("webp_rgb.webp").substr(0, 100)),
            "[decode] x: the WebP is damaged or truncated");
}

TEST(DecodeWebp, WithoutTheLibrary_ErrorSaysSo) {
  if (can_decode("WebP")) GTEST_SKIP() << "built with libwebp";
  EXPECT_EQ(decode_error(golden("webp_rgb.webp")), "[decode] x: no decoder for WebP in this build");
}

TEST(DecodeErrors, Truncation_ErrorSaysSo) {
  const std::string jpeg = golden("jpeg_420.jpg"), png = golden("png_rgb.png");
  EXPECT_EQ(decode_error(jpeg.substr(0, jpeg.size() - 40)),
            "[decode] x: the JPEG is damaged or truncated: Premature end of JPEG file");
  EXPECT_EQ(decode_error(png.substr(0, png.size() - 40)),
            "[decode] x: the PNG is damaged or truncated: the file ends early");
}

TEST(DecodeErrors, DamagedPngData_Throws) {
  std::string png = golden("png_rgb.png");
  png[png.find("IDAT") + 30] ^= 0x10;
  EXPECT_NE(decode_error(png).find("the PNG is damaged"), std::string::npos);
}

TEST(DecodeErrors, WrongPngChecksum_Throws) {
  const std::string png = golden("png_rgb.png");
  for (const std::string chunk : {"IHDR", "IDAT", "IEND"}) {
    const size_t name = png.find(chunk);
    const uint32_t length =
        uint32_t(uint8_t(png[name - 2])) << 8 | uint8_t(png[name - 1]);  // all chunks are below 65536 bytes
    std::string damaged = png;
    damaged[name + 4 + length] ^= 1;  // the data is valid, its checksum is not
    EXPECT_NE(decode_error(damaged).find("the PNG is damaged"), std::string::npos) << chunk;
  }
}

TEST(Decode, BytesAfterTheImage_AreIgnored) {
  for (const std::string name : {"jpeg_420.jpg", "png_rgb.png", "bmp_24.bmp", "pnm_rgb.ppm"})
    EXPECT_EQ(decode(golden(name) + "trailing"), decode(golden(name))) << name;
}

TEST(Decode, JpegPaddingBeforeTheEnd_IsIgnored) {
  std::string jpeg = golden("jpeg_420.jpg");
  const Image image = decode(jpeg);
  jpeg.insert(jpeg.size() - 2, std::string(64, '\0'));
  EXPECT_EQ(decode(jpeg), image);
}

TEST(DecodeLimit, HugeHeader_ThrowsWithTheLimit) {
  const std::string hundred_thousand = big(100000);
  std::string png = golden("png_rgb.png");
  png.replace(16, 8, hundred_thousand + hundred_thousand);
  // A correct checksum for the changed header, so that libpng accepts it.
  uint32_t crc = 0xFFFFFFFF;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= uint8_t(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  png.replace(29, 4, big(~crc));
  const std::string text =
      "[decode] x: 100000x100000 is 10000000000 pixels, the limit is 179000000 (--max-pixels raises it)";
  EXPECT_EQ(decode_error(png), text);
  EXPECT_EQ(decode_error("P6 100000 100000 255\n"), text);
  EXPECT_EQ(decode_error(bmp({.width = 100000, .height = 100000}, "")), text);
  EXPECT_EQ(decode_error(bmp({.width = 100000, .height = -100000}, "")), text);

  std::string jpeg = golden("jpeg_420.jpg");
  const size_t frame = jpeg.find("\xFF\xC0");
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  EXPECT_EQ(decode_error(jpeg),
            "[decode] x: 65500x65500 is 4290250000 pixels, the limit is 179000000 "
            "(--max-pixels raises it)");
}

std::string png_chunk(const std::string& name_and_data) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : name_and_data) {
    crc ^= uint8_t(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return big(uint32_t(name_and_data.size() - 4)) + name_and_data + big(~crc);
}

// A PNG of this size, RGBA, with a valid header and no pixels.
std::string large_png(uint32_t side, bool interlaced, char bits = 8) {
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR" + big(side) + big(side) + bits + "\x06\0\0"s + char(interlaced)) +
         png_chunk("IDAT");
}
std::string png_orientation_6() {
  return png_chunk("eXIfMM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s);
}

TEST(DecodeLimit, MemoryOfTheDecoder_IsBounded) {
  const LoadOptions few{.max_pixels = 9500 * 9500};
  const std::string limit = " MB of memory, the limit is 536 (--max-pixels raises it)";
  // Alpha is blended row by row: three bytes per pixel. With interlacing all four channels are kept, and an
  // orientation needs a copy.
  EXPECT_EQ(decode_error(large_png(9500, false) + png_orientation_6(), few),
            "[decode] x: decoding takes 541" + limit);
  EXPECT_EQ(decode_error(large_png(9500, true) + png_orientation_6(), few),
            "[decode] x: decoding takes 631" + limit);
  EXPECT_EQ(decode_error(large_png(1000, true) + png_orientation_6(), few),
            "[decode] x: the PNG is damaged or truncated: Not enough image data");
  std::string jpeg = golden("jpeg_progressive.jpg");  // with chroma at half of the size
  const size_t frame = jpeg.find("\xFF\xC2");
  jpeg.replace(frame + 5, 4, "\x32\xC8\x32\xC8");  // 13000 x 13000
  EXPECT_EQ(decode_error(jpeg),
            "[decode] x: decoding takes 1014 MB of memory, the limit is 895 (--max-pixels raises it)");
  jpeg.replace(frame + 5, 4, "\x25\x1C\x25\x1C");  // 9500 x 9500
  EXPECT_EQ(decode_error(jpeg, few), "[decode] x: decoding takes 541" + limit);
  EXPECT_EQ(error_text([&] {
              decode_region(bytes_of(jpeg), "x", {0, 0, 9500, 9400}, few);
            }),
            "[decode] x: decoding takes 538" + limit);
}

// 1.4 MB of deflated zeros are enough for this many pixels.
TEST(DecodeLimit, WhatAPngUnpacksTo_IsBounded) {
  EXPECT_EQ(decode_error(large_png(13300, false, 16)),
            "[decode] x: its pixels unpack to 1415 MB, the limit is 895 (--max-pixels raises it)");
  const std::string truncated = "[decode] x: the PNG is damaged or truncated: the file ends early";
  EXPECT_EQ(decode_error(large_png(10500, false, 16)), truncated);  // 882 MB
  EXPECT_EQ(decode_error(large_png(13300, false, 16), {.max_pixels = 300'000'000}), truncated);
}

TEST(DecodeLimit, FileThatIsTooLong_IsNotRead) {
  const TempFolder folder;
  put_bytes(folder / "long.jpg", golden("jpeg_420.jpg"));
  std::filesystem::resize_file(folder / "long.jpg", uintmax_t(20) << 30);  // sparse
  EXPECT_EQ(error_text([&] { load_image(folder / "long.jpg"); }),
            "[decode] " + (folder / "long.jpg").string() +
                ": expected at most 536870912 bytes in an image file, got 21474836480");
}

// A progressive file may repeat a scan any number of times: each costs a pass over the image but few bytes.
TEST(DecodeLimit, TooManyScans_Throw) {
  std::string jpeg = golden("jpeg_gray_progressive.jpg");
  const size_t scan = jpeg.find("\xFF\xDA");
  jpeg[scan + 9] = 0;  // full precision in one scan, so that repeating it is valid
  size_t end = scan + 10;
  while (jpeg[end] != '\xFF' || jpeg[end + 1] == 0) ++end;
  const auto with_scans = [&](int count) {
    std::string out = jpeg.substr(0, scan);
    for (int i = 0; i < count; ++i) out += jpeg.substr(scan, end - scan);
    return out + "\xFF\xD9";
  };
  EXPECT_EQ(decode(with_scans(100)), decode(with_scans(1)));
  EXPECT_EQ(decode_error(with_scans(2000)),
            "[decode] x: the JPEG is damaged or truncated: more than 500 scans");
}

TEST(DecodeLimit, MaxPixels_IsInclusive) {
  const std::string png = golden("png_rgb.png");  // 37 x 29
  EXPECT_EQ(decode(png, {.max_pixels = 37 * 29}).width, 37);
  EXPECT_EQ(decode_error(png, {.max_pixels = 37 * 29 - 1}),
            "[decode] x: 37x29 is 1073 pixels, the limit is 1072 (--max-pixels raises it)");
  EXPECT_NE(decode_error(png, {.max_pixels = -5}).find("the limit is 0"), std::string::npos);
}

TEST(DecodeLimit, LargestLimit_DoesNotOverflow) {
  const LoadOptions unlimited{.max_pixels = INT64_MAX};
  EXPECT_EQ(decode(golden("png_rgb.png"), unlimited).width, 37);
  EXPECT_THROW(decode("P6 2147483647 2147483647 255\n", unlimited), Error);
  EXPECT_THROW(decode("P6 16777216 16777216 255\n", unlimited), Error);
  EXPECT_THROW(decode(bmp({.width = INT32_MAX, .height = INT32_MIN, .bits = 32}, ""), unlimited), Error);
}

TEST(DecodeLimit, ZeroSides_Throw) {
  EXPECT_EQ(decode_error("P5 0 4 255\n"), "[decode] x: expected at least one pixel, the header says 0x4");
  EXPECT_THROW(decode(bmp({.width = -3}, "")), Error);
  EXPECT_THROW(decode(bmp({.height = 0}, "")), Error);
}

TEST(DecodeBmp, RowsAreBottomUpUnlessTheHeightIsNegative) {
  const std::string raster = "\1\2\3\4\5\6\0\0\7\10\11\12\13\14\0\0"s;
  EXPECT_EQ(decode(bmp({}, raster)).pixels, (std::vector<uint8_t>{9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(decode(bmp({.height = -2}, raster)).pixels,
            (std::vector<uint8_t>{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
}

TEST(DecodeBmp, BitFieldsWithAlphaAreBlendedOverWhite) {
  const std::string masks = little(0xFF0000, 4) + little(0xFF00, 4) + little(0xFF, 4) +
                            little(0xFF000000, 4) + std::string(52, '\0');
  const Image image = decode(bmp({.height = 1, .bits = 32, .compression = 3, .masks = masks},
                                 std::string("\x0A\x14\x1E\xFF\x0A\x14\x1E\x00", 8)));
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{30, 20, 10, 255, 255, 255}));
}

TEST(DecodeBmp, FourBitsAndShortPalette) {
  const std::string palette = little(0x112233, 4) + little(0xFFFFFF, 4);
  const Image image =
      decode(bmp({.width = 3, .height = 1, .bits = 4, .colors = 2, .palette = palette}, "\x10\x50\0\0"s));
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{255, 255, 255, 0x11, 0x22, 0x33, 0, 0, 0}));
}

TEST(DecodeBmp, UnsupportedKinds_AreNamed) {
  EXPECT_EQ(decode_error(bmp({.bits = 4, .compression = 1}, "")),
            "[decode] x: compressed BMP (method 1) is not supported");
  EXPECT_EQ(decode_error(bmp({.bits = 24, .compression = 4}, "")),
            "[decode] x: compressed BMP (method 4) is not supported");
  EXPECT_EQ(decode_error(bmp({.bits = 2}, "")),
            "[decode] x: expected a BMP of 1, 4, 8, 16, 24 or 32 bits per pixel, got 2");
  const std::string masks = little(0x1F, 4) + little(0x7E0, 4) + little(0xF800, 4);
  EXPECT_EQ(decode_error(bmp({.bits = 16, .compression = 3, .masks = masks}, std::string(8, 'x'))),
            "[decode] x: BMP with an unusual channel order is not supported");
}

TEST(DecodeBmp, RunsAreCheckedAgainstTheFile) {
  const std::string palette = little(0, 4) + little(0xFFFFFF, 4);
  const auto runs = [&](const std::string& raster, int32_t height = 2) {
    return bmp({.height = height, .bits = 8, .compression = 1, .colors = 2, .palette = palette}, raster);
  };
  EXPECT_EQ(decode(runs("\2\1\0\0\1\1\0\1"s)).pixels, (std::vector<uint8_t>{255, 0, 255, 255}));
  EXPECT_EQ(decode(runs("\0\1"s)).pixels, (std::vector<uint8_t>{0, 0, 0, 0}));
  EXPECT_EQ(decode(runs("\0\2\xFF\xFF\5\1\0\0\0\0\3\1\0\1"s)).pixels, (std::vector<uint8_t>{0, 0, 0, 0}))
      << "moved out of the image";
  for (const std::string& raster : {""s, "\2"s, "\2\1"s, "\0\4\1\1"s, "\0\2\1"s})
    EXPECT_NE(decode_error(runs(raster)).find("the BMP is truncated"), std::string::npos);
  EXPECT_EQ(decode_error(runs("\0\1"s, -2)), "[decode] x: expected run-length encoding from the bottom up");
}

TEST(DecodePnm, Bitmaps_PlainAndBinary) {
  EXPECT_EQ(decode("P1 3 2\n1 0 1\n#c\n011").pixels, (std::vector<uint8_t>{0, 255, 0, 255, 0, 0}));
  EXPECT_EQ(decode("P4 9 2\n\x80\x80\x7F\x00"s).pixels,
            (std::vector<uint8_t>{0, 255, 255, 255, 255, 255, 255, 255, 0, 255, 0, 0, 0, 0, 0, 0, 0, 255}));
  EXPECT_EQ(decode("P4 1 1\n\x80").channels, 1);
  EXPECT_EQ(decode_error("P1 2 1\n12"), "[decode] x: expected 0 or 1 as a pixel");
  EXPECT_EQ(decode_error("P1 2 1\n1 "), "[decode] x: the file ends before the last pixel");
  EXPECT_NE(decode_error("P4 9 2\nabc").find("truncated"), std::string::npos);
}

TEST(DecodePnm, PlainAndBinaryWithComments) {
  EXPECT_EQ(decode("P2 # gray\n3 1\n# top\n255\n0 128 255\n").pixels, (std::vector<uint8_t>{0, 128, 255}));
  EXPECT_EQ(decode("P3\n1 1 255 7 8 9").pixels, (std::vector<uint8_t>{7, 8, 9}));
  EXPECT_EQ(decode("P5#c\n2 1\n255\n\x0a#"s).pixels, (std::vector<uint8_t>{10, '#'}));
  EXPECT_EQ(decode("P6\t1\r\n1 255 abc").channels, 3);
}

TEST(DecodePnm, OtherMaximumValues_AreScaledAndRounded) {
  EXPECT_EQ(decode("P5 4 1 3\n\0\1\2\3"s).pixels, (std::vector<uint8_t>{0, 85, 170, 255}));
  EXPECT_EQ(decode("P5 3 1 65535\n\0\0\x80\x80\xFF\xFF"s).pixels, (std::vector<uint8_t>{0, 128, 255}));
  EXPECT_EQ(decode("P2 2 1 1000 500 1000").pixels, (std::vector<uint8_t>{128, 255}));
}

TEST(DecodePnm, BadNumbers_Throw) {
  EXPECT_EQ(decode_error("P5 3 x"), "[decode] x: expected a number as the height");
  EXPECT_EQ(decode_error("P5 3 "), "[decode] x: the file ends before the height");
  EXPECT_EQ(decode_error("P5 1 1 70000\n1"), "[decode] x: expected a maximum value of 1 to 65535, got 70000");
  EXPECT_EQ(decode_error("P5 1 1 0\n1"), "[decode] x: expected a maximum value of 1 to 65535, got 0");
  EXPECT_EQ(decode_error("P5 99999999999999999999 1 255\n"), "[decode] x: the width is too large");
  EXPECT_EQ(decode_error("P2 1 1 10 11"), "[decode] x: a pixel of 11 is above the maximum value, 10");
  EXPECT_EQ(decode_error("P2 2 1 255 1  "), "[decode] x: the file ends before the last pixel");
  EXPECT_NE(decode_error("P6 2 2 255\nabc").find("truncated"), std::string::npos);
}

}  // namespace
}  // namespace tandem
