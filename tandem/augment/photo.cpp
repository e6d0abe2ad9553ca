#include "tandem/augment/photo.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "tandem/augment/photo_kernel.h"
#include "tandem/augment/photo_op.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/device/on_backend.h"
#include "tandem/image/resize_weights.h"

namespace tandem {
namespace {

using detail::PhotoArguments;
using detail::resized_level;
using detail::ResizeTaps;

constexpr std::int32_t half = 1 << (detail::resize_weight_bits - 1);

// The weights of `count` output pixels from `first` on, `stride` per output pixel.
struct Weights {
  std::int64_t first, count, stride;
  detail::RecycledVector<ResizeTaps> taps;
  const std::int32_t* values;
};

Weights compute_weights(ResizeFilter filter, std::int64_t in, std::int64_t out, std::int64_t first,
                        std::int64_t count, std::int32_t* memory) {
  Weights all{
      .first = first, .count = count, .stride = detail::max_resize_taps(filter, in, out), .values = memory};
  for (std::int64_t i = 0; i < count; ++i, memory += all.stride) {
    const ResizeTaps& taps = all.taps.emplace_back(detail::resize_taps(filter, in, out, first + i));
    double sum = 0;
    for (std::int64_t k = 0; k < taps.count; ++k) sum += taps.weight(k);
    for (std::int64_t k = 0; k < taps.count; ++k)
      memory[k] = detail::fixed_resize_weight(taps.weight(k) / sum);
  }
  return all;
}

// Resizes completely and then copies the window: resize_into() is faster than resize_window() unless most of
// the resized image is outside the window.
void resize_and_crop(const PhotoRecipe& recipe, const PhotoArguments& arguments, const ImageView& in,
                     std::uint8_t* out, PhotoScratch& scratch) {
  const std::int64_t row_bytes = 3 * arguments.resized_width, kept_bytes = std::int64_t{3} * recipe.width;
  scratch.copy.resize(static_cast<std::size_t>(arguments.resized_height * row_bytes));
  detail::resize_into(in, arguments.resized_height, arguments.resized_width, scratch.copy.data(),
                      recipe.filter, scratch.resize);
  const std::uint8_t* from = scratch.copy.data() + arguments.top * row_bytes + 3 * arguments.left;
  for (int y = 0; y < recipe.height; ++y, from += row_bytes, out += kept_bytes)
    std::memcpy(out, from, static_cast<std::size_t>(kept_bytes));
}

// Resizes completely and then copies the result onto the padding.
void resize_and_pad(const PhotoRecipe& recipe, const PhotoArguments& arguments, const ImageView& in,
                    std::uint8_t* out, PhotoScratch& scratch) {
  const std::int64_t row_bytes = 3 * arguments.resized_width, out_bytes = std::int64_t{3} * recipe.width;
  scratch.copy.resize(static_cast<std::size_t>(arguments.resized_height * row_bytes));
  detail::resize_into(in, arguments.resized_height, arguments.resized_width, scratch.copy.data(),
                      recipe.filter, scratch.resize);
  std::memset(out, recipe.padding, static_cast<std::size_t>(recipe.height * out_bytes));
  const std::uint8_t* from = scratch.copy.data();
  std::uint8_t* to = out - arguments.top * out_bytes - 3 * arguments.left;
  for (std::int64_t y = 0; y < arguments.resized_height; ++y, from += row_bytes, to += out_bytes)
    std::memcpy(to, from, static_cast<std::size_t>(row_bytes));
}

// Computes only the window, with the same bytes: the complete resized image may be too large for memory.
void resize_window(const PhotoRecipe& recipe, const PhotoArguments& arguments, const ImageView& in,
                   std::uint8_t* out, PhotoScratch& scratch) {
  const std::int64_t column_weights =
      recipe.width * detail::max_resize_taps(recipe.filter, in.width, arguments.resized_width);
  const std::int64_t row_weights =
      recipe.height * detail::max_resize_taps(recipe.filter, in.height, arguments.resized_height);
  scratch.weights.resize(static_cast<std::size_t>(column_weights + row_weights));
  const Weights columns = compute_weights(recipe.filter, in.width, arguments.resized_width, arguments.left,
                                          recipe.width, scratch.weights.data());
  const Weights rows = compute_weights(recipe.filter, in.height, arguments.resized_height, arguments.top,
                                       recipe.height, scratch.weights.data() + column_weights);
  const std::int64_t begin = rows.taps.front().first;
  const std::int64_t end = rows.taps.back().first + rows.taps.back().count;
  const std::int64_t row_bytes = std::int64_t{3} * recipe.width;
  scratch.resampled.resize(static_cast<std::size_t>((end - begin) * row_bytes));
  std::uint8_t* to = scratch.resampled.data();
  for (std::int64_t y = begin; y < end; ++y)
    for (std::int64_t x = 0; x < recipe.width; ++x, to += 3) {
      const ResizeTaps& taps = columns.taps[static_cast<std::size_t>(x)];
      const std::int32_t* weights = columns.values + x * columns.stride;
      const std::uint8_t* from = in.row(y) + 3 * taps.first;
      std::int32_t r = half, g = half, b = half;
      for (std::int64_t k = 0; k < taps.count; ++k, from += 3) {
        r += weights[k] * from[0];
        g += weights[k] * from[1];
        b += weights[k] * from[2];
      }
      to[0] = resized_level(r);
      to[1] = resized_level(g);
      to[2] = resized_level(b);
    }
  for (std::int64_t y = 0; y < recipe.height; ++y) {
    const ResizeTaps& taps = rows.taps[static_cast<std::size_t>(y)];
    const std::int32_t* weights = rows.values + y * rows.stride;
    const std::uint8_t* from = scratch.resampled.data() + (taps.first - begin) * row_bytes;
    for (std::int64_t i = 0; i < row_bytes; ++i) {
      std::int32_t sum = half;
      for (std::int64_t k = 0; k < taps.count; ++k) sum += weights[k] * from[k * row_bytes + i];
      *out++ = resized_level(sum);
    }
  }
}

// Pixels are copied four bytes at a time; the fourth byte is overwritten by the next pixel.
void flip_rows(int height, int width, std::uint8_t* image, std::vector<std::uint8_t>& copy) {
  const std::size_t row_bytes = std::size_t{3} * static_cast<std::size_t>(width);
  copy.resize(row_bytes + 1);
  for (int y = 0; y < height; ++y, image += row_bytes) {
    std::memcpy(copy.data(), image, row_bytes);
    const std::uint8_t* from = copy.data() + row_bytes;
    for (std::size_t at = 0; at + 4 <= row_bytes; at += 3) std::memcpy(image + at, from -= 3, 4);
    std::memcpy(image + row_bytes - 3, copy.data(), 3);
  }
}

void reverse_rows(int height, int width, std::uint8_t* image) {
  const std::ptrdiff_t row_bytes = std::ptrdiff_t{3} * width;
  for (int y = 0; y < height / 2; ++y)
    std::swap_ranges(image + y * row_bytes, image + (y + 1) * row_bytes,
                     image + (height - 1 - y) * row_bytes);
}

void erase_box(const PhotoRecipe& recipe, const PixelBox& box, std::uint8_t* image) {
  for (std::int64_t y = box.y; y < box.y + box.height; ++y)
    for (std::int64_t x = box.x; x < box.x + box.width; ++x)
      std::memcpy(image + 3 * (y * recipe.width + x), recipe.erase.color, 3);
}

}  // namespace

void transform_photo(const PhotoRecipe& recipe, const RandomKey& key, const ImageView& photo,
                     std::uint8_t* out, PhotoScratch& scratch) {
  transform_photo(recipe, detail::sample_photo(recipe, photo.height, photo.width, key), photo, out, scratch);
}

void transform_photo(const PhotoRecipe& recipe, const PhotoArguments& arguments, const ImageView& photo,
                     std::uint8_t* out, PhotoScratch& scratch) {
  transform_photo_box(recipe, arguments, crop(photo, arguments.box), out, scratch);
}

void transform_photo_box(const PhotoRecipe& recipe, const PhotoArguments& arguments, const ImageView& box,
                         std::uint8_t* out, PhotoScratch& scratch) {
  expect(box.channels == 3);
  const bool uncropped = arguments.resized_height == recipe.height && arguments.resized_width == recipe.width;
  if (uncropped)
    detail::resize_into(box, recipe.height, recipe.width, out, recipe.filter, scratch.resize, arguments.flip);
  else if (recipe.fit == PhotoFit::letterbox)
    resize_and_pad(recipe, arguments, box, out, scratch);
  else if (arguments.resized_height * arguments.resized_width <=
           std::int64_t{4} * recipe.height * recipe.width)
    resize_and_crop(recipe, arguments, box, out, scratch);
  else
    resize_window(recipe, arguments, box, out, scratch);
  if (arguments.flip && !uncropped) flip_rows(recipe.height, recipe.width, out, scratch.copy);
  if (arguments.vertical_flip) reverse_rows(recipe.height, recipe.width, out);
  for (int i = 0; i < arguments.op_count; ++i)
    detail::apply_photo_op(arguments.ops[i], recipe.height, recipe.width, out, scratch.copy);
  erase_box(recipe, arguments.erase, out);
}

template <>
void detail::photo_kernel<Backend::cpu>(const PhotoBatch& batch, StreamView) {
  const PhotoRecipe& recipe = batch.recipe;
  const std::int64_t bytes = std::int64_t{3} * recipe.height * recipe.width;
  parallel_tasks(batch.count, 1, [&] {
    return [&, scratch = PhotoScratch()](std::int64_t i, std::int64_t) mutable {
      const std::int32_t sample = batch.samples[i];
      const PhotoLocation& photo = batch.locations[sample];
      std::uint8_t* const out = batch.out + i * bytes;
      if (photo.height == 0) {
        std::memset(out, 0, static_cast<std::size_t>(bytes));
        return;
      }
      const RandomKey key{.seed = batch.seed,
                          .epoch = batch.epoch,
                          .sample = static_cast<std::uint32_t>(batch.keys ? batch.keys[i] : sample)};
      transform_photo(recipe, key,
                      ImageView(batch.pixels + photo.offset, photo.height, photo.width, 3, 3 * photo.width),
                      out, scratch);
    };
  });
}

void transform_photo_batch(const PhotoRecipe& recipe, std::uint64_t seed, std::int64_t epoch,
                           const Tensor& pixels, const Tensor& locations, const Tensor& samples, Tensor out) {
  const Device device = common_device("photo", {&pixels, &locations, &samples, &out});
  check_photo_recipe(recipe);
  check(epoch >= 0 && epoch <= std::numeric_limits<std::uint32_t>::max(),
        "[photo] expected an epoch from 0 to 4294967295, got {}", epoch);
  check(pixels.dtype() == DType::u8 && pixels.is_contiguous(), "[photo] expected pixels of u8, got {}",
        name_of(pixels.dtype()));
  check(locations.dtype() == DType::i64 && locations.rank() == 2 && locations.size(1) == 3 &&
            locations.is_contiguous(),
        "[photo] expected locations of i64 in shape (count, 3), got {} of {}", locations.shape().to_string(),
        name_of(locations.dtype()));
  check(samples.dtype() == DType::i32 && samples.rank() == 1 && samples.is_contiguous(),
        "[photo] expected samples of i32 in shape (count), got {} of {}", samples.shape().to_string(),
        name_of(samples.dtype()));
  check(out.dtype() == DType::u8 && out.is_contiguous() && out.rank() == 4 &&
            out.size(0) == samples.size(0) && out.size(1) == recipe.height && out.size(2) == recipe.width &&
            out.size(3) == 3,
        "[photo] expected an output of u8 in shape [{}, {}, {}, 3], got {} of {}", samples.size(0),
        recipe.height, recipe.width, out.shape().to_string(), name_of(out.dtype()));
  if (!device.is_cuda()) {
    const std::int32_t* const sample = samples.data<std::int32_t>();
    for (std::int64_t i = 0; i < samples.numel(); ++i)
      check(sample[i] >= 0 && sample[i] < locations.size(0),
            "[photo] expected samples from 0 to below {}, got {} at position {}", locations.size(0),
            sample[i], i);
  }
  if (out.numel() == 0) return;
  static_assert(sizeof(PhotoLocation) == 3 * sizeof(std::int64_t));
  const detail::PhotoBatch batch{.recipe = recipe,
                                 .seed = seed,
                                 .epoch = static_cast<std::uint32_t>(epoch),
                                 .pixels = pixels.data<std::uint8_t>(),
                                 .locations = reinterpret_cast<const PhotoLocation*>(locations.bytes()),
                                 .photo_count = locations.size(0),
                                 .samples = samples.data<std::int32_t>(),
                                 .out = out.data<std::uint8_t>(),
                                 .count = samples.numel()};
  on_backend(device, "photo", [&]<Backend B>() { detail::photo_kernel<B>(batch, current_stream(device)); });
}

}  // namespace tandem
