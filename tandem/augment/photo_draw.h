// From a recipe for photographs to the arguments of one image. As in draw.h everything random is a function
// of (seed, epoch, sample, operation), and the formulas use only what every device rounds alike (whole
// numbers, single products, square roots, explicit fma). The boxes have the distribution of torchvision's
// RandomResizedCrop and RandomErasing, operations and magnitudes that of its ColorJitter and RandAugment.
#pragma once

#include <cmath>
#include <cstdint>

#include "tandem/augment/draw.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/image/image.h"

namespace tandem {

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
  equalize,  // the last of RandAugment
  hue
};

// One change of colours or places, its arguments whole numbers.
struct PhotoOp {
  PhotoOpKind kind = PhotoOpKind::identity;
  // brightness, saturation, contrast, sharpness: the factor in 1/65536; hue: levels to turn; posterize: the
  // bits kept, as a mask; solarize: the least level that is inverted
  std::int32_t value = 0;
  // shears, translations, rotation: where output pixel (x, y) reads, in 1/65536 pixels: column
  // map[0]·x + map[1]·y + map[2], row map[3]·x + map[4]·y + map[5]
  std::int32_t map[6] = {};

  constexpr bool moves() const { return kind >= PhotoOpKind::shear_x && kind <= PhotoOpKind::rotate; }
};

inline constexpr int most_photo_ops = 4 + most_rand_augment;

struct PhotoDraw {
  PixelBox box;                                        // of the photograph
  std::int64_t resized_height = 0, resized_width = 0;  // what the box is resized to
  std::int64_t top = 0, left = 0;                      // where the result lies in that
  bool flip = false;
  int op_count = 0;
  PhotoOp ops[most_photo_ops];
  PixelBox erase;  // of the result; empty: none
};

namespace photo_operation {
// Operations draw apart from each other, and apart from those of draw.h and shuffle.h.
inline constexpr std::uint32_t crop = 0x50480001, flip = 0x50480002, jitter = 0x50480003,
                               rand_augment = 0x50480004, erase = 0x50480005;
}  // namespace photo_operation

// A template, because square roots are constant expressions to some compilers only.
template <class T>
constexpr T square_root(T x) {
  return std::sqrt(x);
}

// e^x for |x| < 40: within an ulp or two, the same bits everywhere.
constexpr double exponential(double x) {
  const auto doublings = static_cast<std::int64_t>(std::fma(x, 0x1.71547652b82fep+0, x < 0 ? -0.5 : 0.5));
  const auto n = static_cast<double>(doublings);  // of ln 2 each
  const double r = std::fma(n, -0x1.abc9e3b39803fp-56, std::fma(n, -0x1.62e42fefa39efp-1, x));
  double sum = 1;
  for (int i = 16; i >= 1; --i) sum = std::fma(sum * r, 1.0 / i, 1.0);
  for (std::int64_t i = doublings; i > 0; --i) sum *= 2;
  for (std::int64_t i = doublings; i < 0; ++i) sum *= 0.5;
  return sum;
}

// ln x for 1e-6 < x < 1e6, by Newton's iteration.
constexpr double logarithm(double x) {
  double y = 0;
  for (double left = x; left > 1.5; left *= 0.5) y += 0.6931471805599453;
  for (double left = x; left < 0.75; left *= 2) y -= 0.6931471805599453;
  for (int i = 0; i < 6; ++i) y += std::fma(x, exponential(-y), -1.0);
  return y;
}

// An area share and a ratio, as torchvision's crops and erasings draw them: the ratio evenly in its
// logarithm.
struct DrawnSides {
  std::int64_t with_ratio, against;  // √(area · ratio), √(area / ratio), rounded
};
constexpr DrawnSides draw_sides(double area, const Bounds& scale, const Bounds& log_ratio,
                                const Words4& words) {
  const double target = area * draw_between(scale, words.word[0], words.word[1]);
  const double aspect = exponential(draw_between(log_ratio, words.word[2], words.word[3]));
  return {round_to_whole(square_root(target * aspect)), round_to_whole(square_root(target / aspect))};
}

constexpr Bounds logarithms(const Bounds& bounds) {
  return {logarithm(bounds.least), logarithm(bounds.most)};
}

constexpr std::int64_t draw_start(std::uint32_t word, std::int64_t room) {
  return to_below(word, static_cast<std::uint32_t>(room) + 1);
}

inline constexpr std::uint32_t crop_attempts = 10;

constexpr PixelBox draw_crop_box(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                                 DrawKey key) {
  key.operation = photo_operation::crop;
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const Bounds log_ratio = logarithms(recipe.crop_ratio);
  for (std::uint32_t attempt = 0; attempt < crop_attempts; ++attempt) {
    const DrawnSides sides = draw_sides(area, recipe.crop_scale, log_ratio, key.block(2 * attempt));
    const std::int64_t w = sides.with_ratio, h = sides.against;
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const Words4 words = key.block(2 * attempt + 1);
    return {.x = draw_start(words.word[1], width - w),
            .y = draw_start(words.word[0], height - h),
            .width = w,
            .height = h};
  }
  // As much of the middle as the bounds of the ratio allow.
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (ratio < recipe.crop_ratio.least) {
    h = round_to_whole(static_cast<double>(width) / recipe.crop_ratio.least);
    h = h < 1 ? 1 : h > height ? height : h;
  } else if (ratio > recipe.crop_ratio.most) {
    w = static_cast<std::int64_t>(std::fma(static_cast<double>(height), recipe.crop_ratio.most, 0.5));
    w = w < 1 ? 1 : w > width ? width : w;
  }
  return {.x = (width - w) / 2, .y = (height - h) / 2, .width = w, .height = h};
}

constexpr PixelBox draw_erase_box(const PhotoRecipe& recipe, DrawKey key) {
  key.operation = photo_operation::erase;
  const Words4 whether = key.block(2 * crop_attempts);
  if (to_unit_double(whether.word[0], whether.word[1]) >= recipe.erase.probability) return {};
  const double area = static_cast<double>(recipe.height) * recipe.width;
  const Bounds log_ratio = logarithms(recipe.erase.ratio);
  for (std::uint32_t attempt = 0; attempt < crop_attempts; ++attempt) {
    const DrawnSides sides = draw_sides(area, recipe.erase.scale, log_ratio, key.block(2 * attempt));
    const std::int64_t h = sides.with_ratio, w = sides.against;
    if (h >= recipe.height || w >= recipe.width) continue;
    const Words4 words = key.block(2 * attempt + 1);
    return {.x = draw_start(words.word[1], recipe.width - w),
            .y = draw_start(words.word[0], recipe.height - h),
            .width = w,
            .height = h};
  }
  return {};
}

constexpr std::int32_t to_fixed(double value) {
  return static_cast<std::int32_t>(round_to_whole(value * 65536));
}

// Brightness, contrast, saturation and hue, those that change anything, in a random order.
constexpr void draw_jitter(const PhotoRecipe& recipe, DrawKey key, PhotoDraw& draw) {
  key.operation = photo_operation::jitter;
  const PhotoJitter& jitter = recipe.jitter;
  const PhotoOpKind kinds[4] = {PhotoOpKind::brightness, PhotoOpKind::contrast, PhotoOpKind::saturation,
                                PhotoOpKind::hue};
  const double widths[4] = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
  int order[4] = {0, 1, 2, 3};
  const Words4 turns = key.block(0);
  for (int i = 3; i > 0; --i) {
    const auto other = static_cast<int>(to_below(turns.word[i], static_cast<std::uint32_t>(i) + 1));
    const int kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (const int i : order) {
    if (widths[i] == 0) continue;
    const Words4 words = key.block(1 + static_cast<std::uint32_t>(i));
    PhotoOp& op = draw.ops[draw.op_count++];
    op.kind = kinds[i];
    if (op.kind == PhotoOpKind::hue) {
      const double turn = draw_between({-widths[i], widths[i]}, words.word[0], words.word[1]);
      op.value = static_cast<std::int32_t>(turn * 255) & 255;
    } else {
      const Bounds bounds{widths[i] > 1 ? 0 : 1 - widths[i], 1 + widths[i]};
      op.value = to_fixed(draw_between(bounds, words.word[0], words.word[1]));
    }
  }
}

// Sets where an operation reads: xx·x + xy·y + x0 and so on, at the middles of pixels.
constexpr void set_map(PhotoOp& op, double xx, double xy, double x0, double yx, double yy, double y0) {
  op.map[0] = to_fixed(xx);
  op.map[1] = to_fixed(xy);
  op.map[2] = to_fixed(std::fma(xx, 0.5, std::fma(xy, 0.5, x0)));
  op.map[3] = to_fixed(yx);
  op.map[4] = to_fixed(yy);
  op.map[5] = to_fixed(std::fma(yx, 0.5, std::fma(yy, 0.5, y0)));
}

// An operation of RandAugment at `share` (magnitude / 30) of its range, the other way round when `negative`.
constexpr PhotoOp rand_augment_op(PhotoOpKind kind, double share, bool negative, int height, int width) {
  PhotoOp op{.kind = kind};
  const double sign = negative ? -1 : 1;
  switch (kind) {
    case PhotoOpKind::shear_x:
      set_map(op, 1, sign * 0.3 * share, 0, 0, 1, 0);
      break;
    case PhotoOpKind::shear_y:
      set_map(op, 1, 0, 0, sign * 0.3 * share, 1, 0);
      break;
    case PhotoOpKind::translate_x: {
      const auto far = static_cast<std::int64_t>(150.0 / 331 * width * share);
      set_map(op, 1, 0, -sign * static_cast<double>(far), 0, 1, 0);
      break;
    }
    case PhotoOpKind::translate_y: {
      const auto far = static_cast<std::int64_t>(150.0 / 331 * height * share);
      set_map(op, 1, 0, 0, 0, 1, -sign * static_cast<double>(far));
      break;
    }
    case PhotoOpKind::rotate: {
      const auto [sine, cosine] = sine_cosine(-sign * 30 * share);
      const double cx = width * 0.5, cy = height * 0.5;
      set_map(op, cosine, sine, std::fma(-sine, cy, std::fma(-cosine, cx, cx)), -sine, cosine,
              std::fma(sine, cx, std::fma(-cosine, cy, cy)));
      break;
    }
    case PhotoOpKind::brightness:
    case PhotoOpKind::saturation:
    case PhotoOpKind::contrast:
    case PhotoOpKind::sharpness:
      op.value = to_fixed(std::fma(sign * 0.9, share, 1.0));
      break;
    case PhotoOpKind::posterize:
      op.value = 0xff << round_to_whole(4 * share) & 0xff;
      break;
    case PhotoOpKind::solarize: {
      const double threshold = std::fma(-255.0, share, 255.0);
      op.value = static_cast<std::int32_t>(threshold);
      if (static_cast<double>(op.value) < threshold) ++op.value;
      break;
    }
    default:
      break;
  }
  return op;
}

constexpr void draw_rand_augment(const PhotoRecipe& recipe, DrawKey key, PhotoDraw& draw) {
  key.operation = photo_operation::rand_augment;
  constexpr auto kinds = static_cast<std::uint32_t>(PhotoOpKind::equalize) + 1;
  const double share = recipe.rand_augment.magnitude / static_cast<double>(most_magnitude);
  for (int i = 0; i < recipe.rand_augment.count; ++i) {
    const Words4 words = key.block(static_cast<std::uint32_t>(i));
    const auto kind = static_cast<PhotoOpKind>(to_below(words.word[0], kinds));
    draw.ops[draw.op_count++] =
        rand_augment_op(kind, share, words.word[1] >> 31 != 0, recipe.height, recipe.width);
  }
}

// How a photograph of this size is fitted; nothing in it is random but a crop's box.
constexpr void draw_fit(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                        const DrawKey& key, PhotoDraw& draw) {
  draw.box = {.x = 0, .y = 0, .width = width, .height = height};
  draw.resized_height = recipe.height;
  draw.resized_width = recipe.width;
  if (recipe.fit == PhotoFit::crop) draw.box = draw_crop_box(recipe, height, width, key);
  if (recipe.fit != PhotoFit::centre) return;
  const std::int64_t side = recipe.shorter_side;
  draw.resized_height = height <= width ? side : side * height / width;
  draw.resized_width = width <= height ? side : side * width / height;
  // Python's round(), which takes halves to the even neighbour.
  const auto middle = [](std::int64_t room) { return room / 2 + (room % 4 == 3 ? 1 : 0); };
  draw.top = middle(draw.resized_height - recipe.height);
  draw.left = middle(draw.resized_width - recipe.width);
}

// key.operation is ignored.
constexpr PhotoDraw draw_photo(const PhotoRecipe& recipe, std::int64_t height, std::int64_t width,
                               const DrawKey& key) {
  PhotoDraw draw;
  draw_fit(recipe, height, width, key, draw);
  if (recipe.flip > 0) {
    DrawKey own = key;
    own.operation = photo_operation::flip;
    const Words4 words = own.block(0);
    draw.flip = to_unit_double(words.word[0], words.word[1]) < recipe.flip;
  }
  if (!recipe.jitter.empty()) draw_jitter(recipe, key, draw);
  if (recipe.rand_augment.count > 0) draw_rand_augment(recipe, key, draw);
  if (recipe.erase.probability > 0) draw.erase = draw_erase_box(recipe, key);
  return draw;
}

}  // namespace tandem
