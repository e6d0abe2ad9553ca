// Samples the arguments of one image from a photo recipe. As in arguments.h, everything random is a function
// of (seed, epoch, sample, operation), and the formulas use only what every device rounds in the same way
// (integers, single products, square roots, explicit fma). The boxes have the distribution of torchvision's
// RandomResizedCrop and RandomErasing, the operations and magnitudes that of its ColorJitter and RandAugment.
#pragma once

#include <cmath>
#include <cstdint>

#include "tandem/augment/arguments.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/image/image.h"

namespace tandem::detail {

enum class PhotoOpKind : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,  // RandAugment samples from the operations up to here
  hue
};

// One operation on colors or positions with its integer arguments.
struct PhotoOp {
  PhotoOpKind kind = PhotoOpKind::identity;
  // brightness, saturation, contrast, sharpness: the factor in 1/65536; hue: the rotation in 1/256 of the
  // circle; posterize: a mask of the bits to keep; solarize: the threshold from which levels are inverted
  std::int32_t value = 0;
  // shears, translations, rotation: the source of output pixel (x, y) in 1/65536 pixels: column
  // map[0]·x + map[1]·y + map[2], row map[3]·x + map[4]·y + map[5]
  std::int32_t map[6] = {};

  constexpr bool is_geometric() const { return kind >= PhotoOpKind::shear_x && kind <= PhotoOpKind::rotate; }
};

inline constexpr int max_photo_ops = 4 + max_rand_augment;

struct PhotoArguments {
  PixelBox box;                                        // the crop of the photograph
  std::int64_t resized_height = 0, resized_width = 0;  // the size to which the box is resized
  std::int64_t top = 0, left = 0;                      // the position of the result in the resized box
  bool flip = false;
  int op_count = 0;
  PhotoOp ops[max_photo_ops];
  PixelBox erase;  // the erased box of the result; empty if none
};

namespace photo_operation {
// Keys of the random streams: different from each other and from those of arguments.h and shuffle.h.
inline constexpr std::uint32_t crop = 0x50480001, flip = 0x50480002, jitter = 0x50480003,
                               rand_augment = 0x50480004, erase = 0x50480005;
}  // namespace photo_operation

// A template, because std::sqrt is a constant expression in some compilers only.
template <class T>
constexpr T portable_sqrt(T x) {
  return std::sqrt(x);
}

// e^x for |x| < 40: within an ulp or two, the same bits on every device.
constexpr double portable_exp(double x) {
  const auto doublings = static_cast<std::int64_t>(std::fma(x, 0x1.71547652b82fep+0, x < 0 ? -0.5 : 0.5));
  const auto n = static_cast<double>(doublings);
  const double r = std::fma(n, -0x1.abc9e3b39803fp-56, std::fma(n, -0x1.62e42fefa39efp-1, x));
  double sum = 1;
  for (int i = 16; i >= 1; --i) sum = std::fma(sum * r, 1.0 / i, 1.0);
  for (std::int64_t i = doublings; i > 0; --i) sum *= 2;
  for (std::int64_t i = doublings; i < 0; ++i) sum *= 0.5;
  return sum;
}

// ln x for 1e-6 < x < 1e6, by Newton's iteration.
constexpr double portable_log(double x) {
  double y = 0;
  for (double left = x; left > 1.5; left *= 0.5) y += 0.6931471805599453;
  for (double left = x; left < 0.75; left *= 2) y -= 0.6931471805599453;
  for (int i = 0; i < 6; ++i) y += std::fma(x, portable_exp(-y), -1.0);
  return y;
}

// The sides of a box, sampled as torchvision does for crops and erasing: the area uniformly, the aspect ratio
// uniformly in its logarithm.
struct SampledSides {
  std::int64_t product;   // √(area · ratio), rounded
  std::int64_t quotient;  // √(area / ratio), rounded
};
constexpr SampledSides sample_sides(double area, const Bounds& scale, const Bounds& log_ratio,
                                    const Words4& words) {
  const double target = area * sample_between(scale, words.word[0], words.word[1]);
  const double aspect = portable_exp(sample_between(log_ratio, words.word[2], words.word[3]));
  return {round_to_int(portable_sqrt(target * aspect)), round_to_int(portable_sqrt(target / aspect))};
}

constexpr Bounds log_bounds(const Bounds& bounds) {
  return {portable_log(bounds.min), portable_log(bounds.max)};
}

// Uniform in 0 … max_offset.
constexpr std::int64_t sample_offset(std::uint32_t word, std::int64_t max_offset) {
  return to_below(word, static_cast<std::uint32_t>(max_offset) + 1);
}

inline constexpr std::uint32_t max_attempts = 10;  // to sample a box that fits

constexpr PixelBox sample_crop_box(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                                   RandomKey key) {
  key.operation = photo_operation::crop;
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const Bounds log_ratio = log_bounds(recipe.crop_ratio);
  for (std::uint32_t attempt = 0; attempt < max_attempts; ++attempt) {
    const SampledSides sides = sample_sides(area, recipe.crop_scale, log_ratio, key.block(2 * attempt));
    const std::int64_t w = sides.product, h = sides.quotient;
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const Words4 words = key.block(2 * attempt + 1);
    return {.x = sample_offset(words.word[1], width - w),
            .y = sample_offset(words.word[0], height - h),
            .width = w,
            .height = h};
  }
  // No attempt fitted: the largest central box within the bounds of the ratio.
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (ratio < recipe.crop_ratio.min) {
    h = round_to_int(static_cast<double>(width) / recipe.crop_ratio.min);
    h = h < 1 ? 1 : h > height ? height : h;
  } else if (ratio > recipe.crop_ratio.max) {
    w = static_cast<std::int64_t>(std::fma(static_cast<double>(height), recipe.crop_ratio.max, 0.5));
    w = w < 1 ? 1 : w > width ? width : w;
  }
  return {.x = (width - w) / 2, .y = (height - h) / 2, .width = w, .height = h};
}

constexpr PixelBox sample_erase_box(const PhotoRecipe& recipe, RandomKey key) {
  key.operation = photo_operation::erase;
  const Words4 decision = key.block(2 * max_attempts);
  if (to_unit_double(decision.word[0], decision.word[1]) >= recipe.erase.probability) return {};
  const double area = static_cast<double>(recipe.height) * recipe.width;
  const Bounds log_ratio = log_bounds(recipe.erase.ratio);
  for (std::uint32_t attempt = 0; attempt < max_attempts; ++attempt) {
    const SampledSides sides = sample_sides(area, recipe.erase.scale, log_ratio, key.block(2 * attempt));
    const std::int64_t h = sides.product, w = sides.quotient;
    if (h >= recipe.height || w >= recipe.width) continue;
    const Words4 words = key.block(2 * attempt + 1);
    return {.x = sample_offset(words.word[1], recipe.width - w),
            .y = sample_offset(words.word[0], recipe.height - h),
            .width = w,
            .height = h};
  }
  return {};
}

constexpr std::int32_t to_fixed(double value) {
  return static_cast<std::int32_t>(round_to_int(value * 65536));
}

// Brightness, contrast, saturation and hue in random order, without those whose range is 0.
constexpr void sample_jitter(const PhotoRecipe& recipe, RandomKey key, PhotoArguments& arguments) {
  key.operation = photo_operation::jitter;
  const PhotoJitter& jitter = recipe.jitter;
  const PhotoOpKind kinds[4] = {PhotoOpKind::brightness, PhotoOpKind::contrast, PhotoOpKind::saturation,
                                PhotoOpKind::hue};
  const double ranges[4] = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
  int order[4] = {0, 1, 2, 3};
  const Words4 shuffle = key.block(0);
  for (int i = 3; i > 0; --i) {
    const auto other = static_cast<int>(to_below(shuffle.word[i], static_cast<std::uint32_t>(i) + 1));
    const int swapped = order[i];
    order[i] = order[other];
    order[other] = swapped;
  }
  for (const int i : order) {
    if (ranges[i] == 0) continue;
    const Words4 words = key.block(1 + static_cast<std::uint32_t>(i));
    PhotoOp& op = arguments.ops[arguments.op_count++];
    op.kind = kinds[i];
    if (op.kind == PhotoOpKind::hue) {
      const double rotation = sample_between({-ranges[i], ranges[i]}, words.word[0], words.word[1]);
      op.value = static_cast<std::int32_t>(rotation * 255) & 255;
    } else {
      const Bounds bounds{ranges[i] > 1 ? 0 : 1 - ranges[i], 1 + ranges[i]};
      op.value = to_fixed(sample_between(bounds, words.word[0], words.word[1]));
    }
  }
}

// Sets the affine map of an operation: column xx·x + xy·y + x0 and row yx·x + yy·y + y0, at pixel centers.
constexpr void set_map(PhotoOp& op, double xx, double xy, double x0, double yx, double yy, double y0) {
  op.map[0] = to_fixed(xx);
  op.map[1] = to_fixed(xy);
  op.map[2] = to_fixed(std::fma(xx, 0.5, std::fma(xy, 0.5, x0)));
  op.map[3] = to_fixed(yx);
  op.map[4] = to_fixed(yy);
  op.map[5] = to_fixed(std::fma(yx, 0.5, std::fma(yy, 0.5, y0)));
}

// A RandAugment operation at `strength` (magnitude / 30) of its range, in the opposite direction if
// `negative`.
constexpr PhotoOp rand_augment_op(PhotoOpKind kind, double strength, bool negative, int height, int width) {
  PhotoOp op{.kind = kind};
  const double sign = negative ? -1 : 1;
  switch (kind) {
    case PhotoOpKind::shear_x:
      set_map(op, 1, sign * 0.3 * strength, 0, 0, 1, 0);
      break;
    case PhotoOpKind::shear_y:
      set_map(op, 1, 0, 0, sign * 0.3 * strength, 1, 0);
      break;
    case PhotoOpKind::translate_x: {
      const auto distance = static_cast<std::int64_t>(150.0 / 331 * width * strength);
      set_map(op, 1, 0, -sign * static_cast<double>(distance), 0, 1, 0);
      break;
    }
    case PhotoOpKind::translate_y: {
      const auto distance = static_cast<std::int64_t>(150.0 / 331 * height * strength);
      set_map(op, 1, 0, 0, 0, 1, -sign * static_cast<double>(distance));
      break;
    }
    case PhotoOpKind::rotate: {
      const auto [sine, cosine] = sine_cosine(-sign * 30 * strength);
      const double cx = width * 0.5, cy = height * 0.5;
      set_map(op, cosine, sine, std::fma(-sine, cy, std::fma(-cosine, cx, cx)), -sine, cosine,
              std::fma(sine, cx, std::fma(-cosine, cy, cy)));
      break;
    }
    case PhotoOpKind::brightness:
    case PhotoOpKind::saturation:
    case PhotoOpKind::contrast:
    case PhotoOpKind::sharpness:
      op.value = to_fixed(std::fma(sign * 0.9, strength, 1.0));
      break;
    case PhotoOpKind::posterize:
      op.value = 0xff << round_to_int(4 * strength) & 0xff;
      break;
    case PhotoOpKind::solarize: {
      const double threshold = std::fma(-255.0, strength, 255.0);
      op.value = static_cast<std::int32_t>(threshold);
      if (static_cast<double>(op.value) < threshold) ++op.value;
      break;
    }
    default:
      break;
  }
  return op;
}

constexpr void sample_rand_augment(const PhotoRecipe& recipe, RandomKey key, PhotoArguments& arguments) {
  key.operation = photo_operation::rand_augment;
  constexpr auto kinds = static_cast<std::uint32_t>(PhotoOpKind::equalize) + 1;
  const double strength = recipe.rand_augment.magnitude / static_cast<double>(max_magnitude);
  for (int i = 0; i < recipe.rand_augment.count; ++i) {
    const Words4 words = key.block(static_cast<std::uint32_t>(i));
    const auto kind = static_cast<PhotoOpKind>(to_below(words.word[0], kinds));
    arguments.ops[arguments.op_count++] =
        rand_augment_op(kind, strength, words.word[1] >> 31 != 0, recipe.height, recipe.width);
  }
}

// The crop and resize of a photograph of this size. Only the box of PhotoFit::crop is random.
constexpr void sample_fit(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                          const RandomKey& key, PhotoArguments& arguments) {
  arguments.box = {.x = 0, .y = 0, .width = width, .height = height};
  arguments.resized_height = recipe.height;
  arguments.resized_width = recipe.width;
  if (recipe.fit == PhotoFit::crop) arguments.box = sample_crop_box(recipe, height, width, key);
  if (recipe.fit != PhotoFit::center) return;
  const std::int64_t side = recipe.shorter_side;
  arguments.resized_height = height <= width ? side : side * height / width;
  arguments.resized_width = width <= height ? side : side * width / height;
  // Half of the margin, rounded as Python's round() does: halves to even.
  const auto middle = [](std::int64_t margin) { return margin / 2 + (margin % 4 == 3 ? 1 : 0); };
  arguments.top = middle(arguments.resized_height - recipe.height);
  arguments.left = middle(arguments.resized_width - recipe.width);
}

// Samples all arguments for a photograph of height × width. key.operation is ignored.
constexpr PhotoArguments sample_photo(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                                      const RandomKey& key) {
  PhotoArguments arguments;
  sample_fit(recipe, height, width, key, arguments);
  if (recipe.flip > 0) {
    RandomKey flip_key = key;
    flip_key.operation = photo_operation::flip;
    const Words4 words = flip_key.block(0);
    arguments.flip = to_unit_double(words.word[0], words.word[1]) < recipe.flip;
  }
  if (!recipe.jitter.empty()) sample_jitter(recipe, key, arguments);
  if (recipe.rand_augment.count > 0) sample_rand_augment(recipe, key, arguments);
  if (recipe.erase.probability > 0) arguments.erase = sample_erase_box(recipe, key);
  return arguments;
}

}  // namespace tandem::detail
