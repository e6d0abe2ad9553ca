// Samples the arguments of one image from a photo recipe. As in arguments.h, everything random is a function
// of (seed, epoch, sample, operation), and the formulas use only what every device rounds in the same way
// (integers, single products, square roots, explicit fma). The boxes have the distribution of torchvision's
// RandomResizedCrop and RandomErasing, the operations and magnitudes that of its ColorJitter, RandAugment,
// TrivialAugmentWide, RandomRotation and RandomPerspective.
#pragma once

#include <cmath>
#include <cstdint>

#include "tandem/augment/arguments.h"
#include "tandem/augment/perspective.h"
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
  equalize,  // RandAugment and TrivialAugment sample from the operations up to here
  hue,
  perspective
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
  // perspective: at pixel centers, column (c[0]·x + c[1]·y + c[2]) / w, row (c[3]·x + c[4]·y + c[5]) / w with
  // w = c[6]·x + c[7]·y + 1
  double coefficients[8] = {};

  constexpr bool is_geometric() const { return kind >= PhotoOpKind::shear_x && kind <= PhotoOpKind::rotate; }
};

// Rotation, perspective, four of the jitter, RandAugment and TrivialAugment.
inline constexpr int max_photo_ops = 2 + 4 + max_rand_augment + 1;

struct PhotoArguments {
  PixelBox box;                                        // the crop of the photograph
  std::int64_t resized_height = 0, resized_width = 0;  // the size to which the box is resized
  // The position of the result in the resized box; negative where it is padded.
  std::int64_t top = 0, left = 0;
  bool flip = false, vertical_flip = false;
  int op_count = 0;
  PhotoOp ops[max_photo_ops];
  PixelBox erase;  // the erased box of the result; empty if none
};

namespace photo_operation {
// Keys of the random streams: different from each other and from those of arguments.h and shuffle.h.
inline constexpr std::uint32_t crop = 0x50480001, flip = 0x50480002, jitter = 0x50480003,
                               rand_augment = 0x50480004, erase = 0x50480005, vertical_flip = 0x50480006,
                               rotation = 0x50480007, perspective = 0x50480008, trivial_augment = 0x50480009;
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

// Counterclockwise about the center, as PIL's Image.rotate().
constexpr PhotoOp rotation_op(double degrees, int height, int width) {
  PhotoOp op{.kind = PhotoOpKind::rotate};
  const auto [sine, cosine] = sine_cosine(-degrees);
  const double cx = width * 0.5, cy = height * 0.5;
  set_map(op, cosine, sine, std::fma(-sine, cy, std::fma(-cosine, cx, cx)), -sine, cosine,
          std::fma(sine, cx, std::fma(-cosine, cy, cy)));
  return op;
}

// The strongest operations of RandAugment or TrivialAugment.
struct AugmentRanges {
  double shear;                     // columns per row
  double translate_x, translate_y;  // pixels
  double rotate;                    // degrees
  double enhance;                   // of factors, from 1
  double posterize;                 // bits that are cleared
};
constexpr AugmentRanges rand_augment_ranges(int height, int width) {
  return {0.3, 150.0 / 331 * width, 150.0 / 331 * height, 30, 0.9, 4};
}
// A function, because a reference to a constant of the host cannot be read on the GPU.
constexpr AugmentRanges trivial_augment_ranges() {
  return {0.99, 32, 32, 135, 0.99, 6};
}

// An operation at `strength` (magnitude / 30) of its range, in the opposite direction if `negative`.
constexpr PhotoOp augment_op(PhotoOpKind kind, double strength, bool negative, const AugmentRanges& ranges,
                             int height, int width) {
  PhotoOp op{.kind = kind};
  const double sign = negative ? -1 : 1;
  switch (kind) {
    case PhotoOpKind::shear_x:
      set_map(op, 1, sign * ranges.shear * strength, 0, 0, 1, 0);
      break;
    case PhotoOpKind::shear_y:
      set_map(op, 1, 0, 0, sign * ranges.shear * strength, 1, 0);
      break;
    case PhotoOpKind::translate_x: {
      const auto distance = static_cast<std::int64_t>(ranges.translate_x * strength);
      set_map(op, 1, 0, -sign * static_cast<double>(distance), 0, 1, 0);
      break;
    }
    case PhotoOpKind::translate_y: {
      const auto distance = static_cast<std::int64_t>(ranges.translate_y * strength);
      set_map(op, 1, 0, 0, 0, 1, -sign * static_cast<double>(distance));
      break;
    }
    case PhotoOpKind::rotate:
      return rotation_op(sign * ranges.rotate * strength, height, width);
    case PhotoOpKind::brightness:
    case PhotoOpKind::saturation:
    case PhotoOpKind::contrast:
    case PhotoOpKind::sharpness:
      op.value = to_fixed(std::fma(sign * ranges.enhance, strength, 1.0));
      break;
    case PhotoOpKind::posterize:
      op.value = 0xff << round_to_int(ranges.posterize * strength) & 0xff;
      break;
    case PhotoOpKind::solarize: {
      constexpr double rounding = 1e-6;  // the strength is not exact
      const double threshold = std::fma(-255.0, strength, 255.0);
      op.value = static_cast<std::int32_t>(threshold + rounding);
      if (static_cast<double>(op.value) + rounding < threshold) ++op.value;
      break;
    }
    default:
      break;
  }
  return op;
}

inline constexpr auto augment_kinds = static_cast<std::uint32_t>(PhotoOpKind::equalize) + 1;

// Whether something of this probability happens.
constexpr bool sample_chance(RandomKey key, std::uint32_t operation, double probability) {
  key.operation = operation;
  const Words4 words = key.block(0);
  return to_unit_double(words.word[0], words.word[1]) < probability;
}

// With the corners of the result at `corners`: upper left, upper right, lower right, lower left.
constexpr PhotoOp perspective_op(const Point (&corners)[4], int height, int width) {
  PhotoOp op{.kind = PhotoOpKind::perspective};
  const double right = width - 1, bottom = height - 1;
  const Point from[4] = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
  if (!perspective_coefficients(corners, from, op.coefficients)) op.kind = PhotoOpKind::identity;
  return op;
}

constexpr void sample_perspective(const PhotoRecipe& recipe, const RandomKey& key,
                                  PhotoArguments& arguments) {
  if (!sample_chance(key, photo_operation::perspective, recipe.perspective.probability)) return;
  RandomKey corner_key = key;
  corner_key.operation = photo_operation::perspective;
  const auto max_dx = static_cast<std::int64_t>(recipe.perspective.distortion * (recipe.width / 2));
  const auto max_dy = static_cast<std::int64_t>(recipe.perspective.distortion * (recipe.height / 2));
  const double right = recipe.width - 1, bottom = recipe.height - 1;
  double x[4] = {}, y[4] = {};  // how far the corners move inwards
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Words4 words = corner_key.block(1 + i);
    x[i] = static_cast<double>(sample_offset(words.word[0], max_dx));
    y[i] = static_cast<double>(sample_offset(words.word[1], max_dy));
  }
  arguments.ops[arguments.op_count++] = perspective_op(
      {{x[0], y[0]}, {right - x[1], y[1]}, {right - x[2], bottom - y[2]}, {x[3], bottom - y[3]}},
      recipe.height, recipe.width);
}

constexpr void sample_rotation(const PhotoRecipe& recipe, RandomKey key, PhotoArguments& arguments) {
  key.operation = photo_operation::rotation;
  const Words4 words = key.block(0);
  const double degrees = sample_between({-recipe.rotation, recipe.rotation}, words.word[0], words.word[1]);
  arguments.ops[arguments.op_count++] = rotation_op(degrees, recipe.height, recipe.width);
}

constexpr void sample_rand_augment(const PhotoRecipe& recipe, RandomKey key, PhotoArguments& arguments) {
  key.operation = photo_operation::rand_augment;
  const double strength = recipe.rand_augment.magnitude / static_cast<double>(max_magnitude);
  for (int i = 0; i < recipe.rand_augment.count; ++i) {
    const Words4 words = key.block(static_cast<std::uint32_t>(i));
    const auto kind = static_cast<PhotoOpKind>(to_below(words.word[0], augment_kinds));
    arguments.ops[arguments.op_count++] =
        augment_op(kind, strength, words.word[1] >> 31 != 0, rand_augment_ranges(recipe.height, recipe.width),
                   recipe.height, recipe.width);
  }
}

// One operation at one of 31 magnitudes.
constexpr void sample_trivial_augment(const PhotoRecipe& recipe, RandomKey key, PhotoArguments& arguments) {
  key.operation = photo_operation::trivial_augment;
  const Words4 words = key.block(0);
  const auto kind = static_cast<PhotoOpKind>(to_below(words.word[0], augment_kinds));
  const double strength = to_below(words.word[1], max_magnitude + 1) / static_cast<double>(max_magnitude);
  arguments.ops[arguments.op_count++] = augment_op(kind, strength, words.word[2] >> 31 != 0,
                                                   trivial_augment_ranges(), recipe.height, recipe.width);
}

// The value rounded as Python's round() does: halves to even. Only compared with sums that are exact, because
// a difference could be contracted with the product that the value is.
constexpr std::int64_t round_half_even(double value) {
  const auto below = static_cast<std::int64_t>(value);
  const double half = static_cast<double>(below) + 0.5;
  return below + (value > half || (value == half && below % 2 == 1) ? 1 : 0);
}

// Half of a margin, rounded in the same way.
constexpr std::int64_t half_margin(std::int64_t margin) {
  return margin / 2 + (margin % 4 == 3 ? 1 : 0);
}

// The size of Pillow's ImageOps.contain(), of at least one pixel, and the position of ImageOps.pad().
constexpr void fit_letterbox(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                             PhotoArguments& arguments) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const double ratio = w / h, out_ratio = static_cast<double>(recipe.width) / recipe.height;
  if (ratio > out_ratio) arguments.resized_height = round_half_even(h / w * recipe.width);
  if (ratio < out_ratio) arguments.resized_width = round_half_even(w / h * recipe.height);
  if (arguments.resized_height < 1) arguments.resized_height = 1;
  if (arguments.resized_width < 1) arguments.resized_width = 1;
  arguments.top = -half_margin(recipe.height - arguments.resized_height);
  arguments.left = -half_margin(recipe.width - arguments.resized_width);
}

// The crop and resize of a photograph of this size. Only the box of PhotoFit::crop is random.
constexpr void sample_fit(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                          const RandomKey& key, PhotoArguments& arguments) {
  arguments.box = {.x = 0, .y = 0, .width = width, .height = height};
  arguments.resized_height = recipe.height;
  arguments.resized_width = recipe.width;
  if (recipe.fit == PhotoFit::crop) arguments.box = sample_crop_box(recipe, height, width, key);
  if (recipe.fit == PhotoFit::letterbox) fit_letterbox(recipe, height, width, arguments);
  if (recipe.fit != PhotoFit::center) return;
  const std::int64_t side = recipe.shorter_side;
  arguments.resized_height = height <= width ? side : side * height / width;
  arguments.resized_width = width <= height ? side : side * width / height;
  arguments.top = half_margin(arguments.resized_height - recipe.height);
  arguments.left = half_margin(arguments.resized_width - recipe.width);
}

// Samples all arguments for a photograph of height × width. key.operation is ignored.
constexpr PhotoArguments sample_photo(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                                      const RandomKey& key) {
  PhotoArguments arguments;
  sample_fit(recipe, height, width, key, arguments);
  if (recipe.flip > 0) arguments.flip = sample_chance(key, photo_operation::flip, recipe.flip);
  if (recipe.vertical_flip > 0)
    arguments.vertical_flip = sample_chance(key, photo_operation::vertical_flip, recipe.vertical_flip);
  if (recipe.rotation > 0) sample_rotation(recipe, key, arguments);
  if (!recipe.perspective.empty()) sample_perspective(recipe, key, arguments);
  if (!recipe.jitter.empty()) sample_jitter(recipe, key, arguments);
  if (recipe.rand_augment.count > 0) sample_rand_augment(recipe, key, arguments);
  if (recipe.trivial_augment) sample_trivial_augment(recipe, key, arguments);
  if (recipe.erase.probability > 0) arguments.erase = sample_erase_box(recipe, key);
  return arguments;
}

}  // namespace tandem::detail
