// Writes JPEGs of every kind for tests and benchmarks: chroma subsampling, progressive, restarts, gray, CMYK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>

#include "tandem/image/image.h"

namespace tandem {

struct JpegKind {
  int quality = 90;
  int h_factor = 2, v_factor = 2;  // luma samples per chroma sample along each axis
  bool progressive = false;
  unsigned restart_interval = 0;  // in MCUs
  bool cmyk = false;              // from an RGB image, with a synthetic fourth channel
  int orientation = 1;            // written to an EXIF block unless it is 1
};

// The image is gray or RGB. A failure is a bug in the test; libjpeg then exits.
inline std::vector<uint8_t> write_jpeg(const Image& image, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = JDIMENSION(image.width);
  info.image_height = JDIMENSION(image.height);
  info.input_components = kind.cmyk ? 4 : image.channels;
  info.in_color_space = kind.cmyk ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (kind.cmyk) jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, kind.quality, TRUE);
  info.comp_info[0].h_samp_factor = kind.h_factor;
  info.comp_info[0].v_samp_factor = kind.v_factor;
  if (kind.cmyk)
    info.comp_info[3].h_samp_factor = kind.h_factor, info.comp_info[3].v_samp_factor = kind.v_factor;
  info.restart_interval = kind.restart_interval;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (kind.orientation != 1) {
    const uint8_t exif[] = {'E', 'x',  'i', 'f', 0,
                            0,   'I',  'I', 42,  0,
                            8,   0,    0,   0,   1,
                            0,   0x12, 1,   3,   0,
                            1,   0,    0,   0,   uint8_t(kind.orientation),
                            0,   0,    0,   0,   0,
                            0,   0};
    jpeg_write_marker(&info, JPEG_APP0 + 1, exif, sizeof exif);
  }
  std::vector<uint8_t> row(size_t(image.width * info.input_components));
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x)
      for (int c = 0; c < info.input_components; ++c)
        row[size_t(x * info.input_components + c)] = c < 3 ? image.at(y, x, c) : uint8_t(255 - (x + y) % 99);
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::vector<uint8_t> bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

}  // namespace tandem
