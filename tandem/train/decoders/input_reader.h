// From the bytes of an image file to the input of a model, as `tandem predict` makes it, to the bit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/image/image.h"
#include "tandem/train/predict_images.h"

namespace tandem {

// What the preprocessing of a model depends on.
struct InputFormat {
  std::int64_t height = 0, width = 0, channels = 0;
  std::string transform;  // empty: not a model of photographs

  std::size_t bytes() const { return static_cast<std::size_t>(height * width * channels); }
  friend bool operator==(const InputFormat&, const InputFormat&) = default;
};

InputFormat input_format(const ModelInfo& info);

// Reuses memory from image to image: one per thread.
class InputReader {
 public:
  // Throws Error for a transform that is not one of photographs.
  explicit InputReader(const InputFormat& format);

  const InputFormat& format() const { return format_; }
  // Writes format().bytes() bytes. Throws DecodeError for what is not an image that can be read, and for more
  // than `max_pixels` pixels.
  void read(std::string_view bytes, std::int64_t max_pixels, std::uint8_t* out);
  // Memory of the last image, which is reused for the next.
  std::size_t kept_bytes() const {
    return scratch_.photo.box.pixels.capacity() + scratch_.converted.pixels.capacity();
  }

 private:
  InputFormat format_;
  ModelPixels pixels_;
  std::optional<PhotoRecipe> recipe_;
  PixelScratch scratch_;
};

// Of all images in errors, where predict has the path.
inline constexpr std::string_view image_name = "image";

// "cut short" from the text of an error about an image of this name.
std::string image_error(const Error& error);

}  // namespace tandem
