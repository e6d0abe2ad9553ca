// LoadOptions::plain_chroma repeats subsampled chroma: the pixels follow from the planes in the file by the
// formula of JFIF. And read_common_jpeg() finds the files for which other decoders do the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tandem/image/jpeg_frame.h"
#include "tests/image/jpeg_writer.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

// The components of a JPEG as they are stored, each in rows of whole blocks.
struct Planes {
  std::array<std::vector<uint8_t>, 3> levels;
  std::array<int64_t, 3> row{};
};

Planes read_planes(const std::vector<uint8_t>& bytes) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  info.raw_data_out = TRUE;
  info.out_color_space = JCS_YCbCr;
  jpeg_start_decompress(&info);
  Planes planes;
  const int64_t band = DCTSIZE * info.max_v_samp_factor;
  for (size_t c = 0; c < 3; ++c) {
    planes.row[c] = int64_t(info.comp_info[c].width_in_blocks) * DCTSIZE;
    planes.levels[c].resize(size_t((int64_t(info.image_height) + 2 * band) * planes.row[c]));
  }
  while (info.output_scanline < info.output_height) {
    std::array<std::vector<JSAMPROW>, 3> rows;
    std::array<JSAMPARRAY, 3> all{};
    for (size_t c = 0; c < 3; ++c) {
      const int v = info.comp_info[c].v_samp_factor;
      const int64_t first = int64_t(info.output_scanline) * v / info.max_v_samp_factor;
      for (int64_t y = 0; y < int64_t(v) * DCTSIZE; ++y)
        rows[c].push_back(planes.levels[c].data() + (first + y) * planes.row[c]);
      all[c] = rows[c].data();
    }
    jpeg_read_raw_data(&info, all.data(), JDIMENSION(band));
  }
  jpeg_destroy_decompress(&info);
  return planes;
}

Image expected_pixels(const std::vector<uint8_t>& bytes, int64_t height, int64_t width, int h, int v) {
  const Planes planes = read_planes(bytes);
  Image image = make_image(height, width, 3);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const auto level = [&](size_t c, int64_t row, int64_t column) {
        return int(planes.levels[c][size_t(row * planes.row[c] + column)]);
      };
      const int luma = level(0, y, x), cb = level(1, y / v, x / h) - 128, cr = level(2, y / v, x / h) - 128;
      constexpr int half = 1 << 15;  // coefficients in 1/65536
      const int rgb[] = {luma + ((91881 * cr + half) >> 16), luma + ((-22554 * cb - 46802 * cr + half) >> 16),
                         luma + ((116130 * cb + half) >> 16)};
      for (int c = 0; c < 3; ++c)
        image.pixels[size_t(3 * (y * width + x) + c)] = uint8_t(std::clamp(rgb[c], 0, 255));
    }
  return image;
}

struct Factors {
  int h, v;
};
constexpr Factors common_factors[] = {{1, 1}, {2, 1}, {2, 2}};

TEST(PlainChroma, EveryPixel_FollowsTheFormula) {
  for (const auto& [h, v] : common_factors)
    for (const auto& [height, width] : {std::pair{64, 48}, {37, 51}, {1, 1}, {17, 16}, {2, 33}}) {
      const auto bytes =
          write_jpeg(example_photo(height, width), {.quality = 80, .h_factor = h, .v_factor = v});
      EXPECT_TRUE(decode_image(bytes, "photo", {.plain_chroma = true}) ==
                  expected_pixels(bytes, height, width, h, v))
          << h << "x" << v << ", " << width << "x" << height;
    }
}

TEST(PlainChroma, SubsampledFiles_DifferFromInterpolatedOnes) {
  for (const auto& [h, v] : common_factors) {
    const auto bytes = write_jpeg(example_photo(64, 48), {.h_factor = h, .v_factor = v});
    EXPECT_EQ(decode_image(bytes, "photo", {.plain_chroma = true}) == decode_image(bytes, "photo"), h == 1);
  }
}

TEST(PlainChroma, Region_HasThePixelsOfTheWholeImage) {
  for (const Factors factors : {Factors{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int orientation : {1, 6}) {
      const auto bytes = write_jpeg(
          example_photo(61, 75), {.h_factor = factors.h, .v_factor = factors.v, .orientation = orientation});
      const LoadOptions options{.rgb = true, .plain_chroma = true};
      const Image whole = decode_image(bytes, "photo", options);
      for (int64_t y = 0; y < 50; y += 7)
        for (int64_t x = 0; x < 50; x += 5)
          for (const int64_t side : {1, 4, 11}) {
            const PixelBox box{x, y, side, std::min<int64_t>(side + 3, whole.height - y)};
            ASSERT_TRUE(decode_region(bytes, "photo", box, options) == copy(crop(whole, box)))
                << factors.h << "x" << factors.v << ", " << side << " at " << x << ", " << y;
          }
    }
}

TEST(CommonJpeg, UsualFiles_HaveTheirSize) {
  const Image photo = example_photo(37, 51);
  for (const auto& [h, v] : common_factors)
    for (const unsigned interval : {0u, 1u, 3u}) {
      const auto bytes = write_jpeg(photo, {.h_factor = h, .v_factor = v, .restart_interval = interval});
      EXPECT_EQ(read_common_jpeg(bytes), (ImageInfo{37, 51, 3})) << h << "x" << v << ", " << interval;
    }
  EXPECT_EQ(read_common_jpeg(write_jpeg(to_gray(photo), {.h_factor = 1, .v_factor = 1})),
            (ImageInfo{37, 51, 1}));
}

TEST(CommonJpeg, OtherFiles_HaveNone) {
  const Image photo = example_photo(37, 51);
  for (const JpegKind& kind : {JpegKind{.progressive = true},
                               {.cmyk = true},
                               {.orientation = 6},
                               {.h_factor = 1, .v_factor = 2},
                               {.h_factor = 4, .v_factor = 1}})
    EXPECT_FALSE(read_common_jpeg(write_jpeg(photo, kind)));
  const std::vector<uint8_t> bytes = write_jpeg(photo, {});
  EXPECT_FALSE(read_common_jpeg(bytes, {.max_pixels = 37 * 51 - 1}));
  EXPECT_FALSE(read_common_jpeg(read_bytes(golden_folder() / "exif_1.png")));
}

TEST(CommonJpeg, DamagedFiles_HaveNone) {
  for (const unsigned interval : {0u, 2u}) {
    const std::vector<uint8_t> bytes = write_jpeg(example_photo(37, 51), {.restart_interval = interval});
    for (size_t kept = 0; kept < bytes.size(); ++kept)
      EXPECT_FALSE(read_common_jpeg(std::span(bytes).first(kept))) << kept;
    std::vector<uint8_t> marked = bytes;  // a marker within the compressed data
    marked[bytes.size() - 20] = 0xFF;
    marked[bytes.size() - 19] = 0xC4;
    EXPECT_FALSE(read_common_jpeg(marked));
    marked[bytes.size() / 2] = 0xFF;  // the end, before the last restart
    marked[bytes.size() / 2 + 1] = JPEG_EOI;
    EXPECT_EQ(read_common_jpeg(marked).has_value(), interval == 0);
  }
}

}  // namespace
}  // namespace tandem
