// Writing images in the format that the file name's ending asks for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

/// The bytes of a baseline JPEG file without chroma subsampling. Throws Error for an empty image and for
/// sides above 65,500 pixels.
std::vector<uint8_t> encode_jpeg(const Image& image, int quality = 95);

/// Whether save_image() knows the ending: png, jpg, jpeg, ppm (RGB) and pgm (gray), in any case.
bool is_image_name(const std::filesystem::path& path);

/// ".png, .jpg, .jpeg, .ppm, .pgm"
std::string image_endings();

/// Writes an image atomically. Throws Error for an unknown ending, naming the known ones, and if the file
/// cannot be written.
void save_image(const std::filesystem::path& path, const Image& image);

}  // namespace tandem
