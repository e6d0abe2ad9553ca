#include "tandem/train/decoders/input_reader.h"

#include "tandem/augment/photo_arguments.h"
#include "tandem/data/photo_store.h"
#include "tandem/image/decode.h"

namespace tandem {
namespace {

std::span<const std::uint8_t> as_bytes(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

ModelInfo info_of(const InputFormat& format) {
  return {.height = format.height,
          .width = format.width,
          .channels = format.channels,
          .transform = format.transform};
}

}  // namespace

InputFormat input_format(const ModelInfo& info) {
  return {info.height, info.width, info.channels, info.transform};
}

InputReader::InputReader(const InputFormat& format) : format_(format), pixels_(info_of(format), "serve") {
  if (info_of(format).expects_photos()) recipe_ = info_of(format).photo_recipe();
}

void InputReader::read(std::string_view bytes, std::int64_t max_pixels, std::uint8_t* out) {
  if (!recipe_) {
    pixels_.write(decode_image(as_bytes(bytes), image_name, {.max_pixels = max_pixels}), out, scratch_);
    return;
  }
  const LoadOptions options{.max_pixels = max_pixels, .rgb = true};
  const ImageInfo info = read_image_info(as_bytes(bytes), image_name, options);
  const detail::PhotoArguments arguments =
      detail::sample_photo(*recipe_, info.height, info.width, RandomKey{});
  PhotoScratch& scratch = scratch_.photo;
  scratch.box =
      decode_scaled(as_bytes(bytes), image_name, arguments.box, 0, 0, options, std::move(scratch.box));
  transform_photo_box(*recipe_, arguments, scratch.box, out, scratch);
}

std::string image_error(const Error& error) {
  return reason_without_path(error.what(), image_name);
}

}  // namespace tandem
