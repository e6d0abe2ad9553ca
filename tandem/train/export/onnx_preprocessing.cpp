#include "tandem/train/export/onnx_preprocessing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/resize_area.h"
#include "tandem/image/resize_weights.h"

namespace tandem {
namespace {

constexpr OnnxType f64 = OnnxType::f64, i32 = OnnxType::i32, i64 = OnnxType::i64;

// Short names for the nodes that compute weights, in f64 as the library does.
class Nodes {
 public:
  explicit Nodes(OnnxBuilder& builder) : builder_(builder) {}

  std::string add(const std::string& a, const std::string& b) { return builder_.add("Add", {a, b}); }
  std::string subtract(const std::string& a, const std::string& b) { return builder_.add("Sub", {a, b}); }
  std::string multiply(const std::string& a, const std::string& b) { return builder_.add("Mul", {a, b}); }
  std::string divide(const std::string& a, const std::string& b) { return builder_.add("Div", {a, b}); }
  std::string max(const std::string& a, const std::string& b) { return builder_.add("Max", {a, b}); }
  std::string min(const std::string& a, const std::string& b) { return builder_.add("Min", {a, b}); }
  std::string floor(const std::string& a) { return builder_.add("Floor", {a}); }
  std::string cast(const std::string& a, OnnxType type) {
    return builder_.add("Cast", {a}, {onnx_attribute("to", std::int64_t{static_cast<std::int32_t>(type)})});
  }
  std::string transpose(const std::string& a, std::vector<std::int64_t> order) {
    return builder_.add("Transpose", {a}, {onnx_attribute("perm", std::move(order))});
  }
  std::string reshape(const std::string& a, const std::vector<std::int64_t>& dims) {
    return builder_.add("Reshape", {a, builder_.integers(dims)});
  }
  std::string concat(const std::vector<std::string>& parts, std::int64_t axis) {
    return builder_.add("Concat", parts, {onnx_attribute("axis", axis)});
  }
  // The size of an axis: i64, no axis.
  std::string size(const std::string& a, std::int64_t axis) {
    const std::string list =
        builder_.add("Shape", {a}, {onnx_attribute("start", axis), onnx_attribute("end", axis + 1)});
    return builder_.add("Squeeze", {list});
  }
  std::string range(const std::string& count) { return builder_.add("Range", {real(0), count, real(1)}); }
  std::string real(double value) { return builder_.number(value, f64); }
  std::string whole(std::int64_t value, OnnxType type = i64) { return builder_.integer(value, type); }
  OnnxBuilder& builder() { return builder_; }

 private:
  OnnxBuilder& builder_;
};

// One side of the image: its size, the size it is resized to, and the part of that which is kept.
struct Side {
  std::string in;       // i64
  std::string resized;  // i64
  std::string first;    // i64, of the kept part
  std::int64_t out = 0;
  bool padded = false;  // whether the kept part may extend beyond the resized side

  // 0, 1, …, out − 1 from the first kept one on: i64 (out).
  std::string positions(Nodes& nodes) const {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < out; ++i) indices.push_back(i);
    return nodes.add(nodes.builder().integers(indices), first);
  }
};

// 0, 1, …, out − 1 as a column.
std::string column(Nodes& nodes, std::int64_t out) {
  std::vector<double> indices;
  for (std::int64_t i = 0; i < out; ++i) indices.push_back(static_cast<double>(i));
  return nodes.builder().doubles({out, 1}, indices);
}

// resize_filter_value() of |x|.
std::string filter_value(Nodes& nodes, ResizeFilter filter, const std::string& x) {
  const std::string zero = nodes.real(0), one = nodes.real(1);
  if (filter == ResizeFilter::bilinear) return nodes.max(nodes.subtract(one, x), zero);
  OnnxBuilder& builder = nodes.builder();
  // (1.5 x − 2.5) x² + 1 below 1, (((x − 5) x + 8) x − 4) (−0.5) below 2
  const std::string square = nodes.multiply(x, x);
  const std::string near = nodes.add(
      nodes.multiply(nodes.subtract(nodes.multiply(nodes.real(1.5), x), nodes.real(2.5)), square), one);
  std::string far = nodes.add(nodes.multiply(nodes.subtract(x, nodes.real(5)), x), nodes.real(8));
  far = nodes.multiply(nodes.subtract(nodes.multiply(far, x), nodes.real(4)), nodes.real(-0.5));
  far = builder.add("Where", {builder.add("Less", {x, nodes.real(2)}), far, zero});
  return builder.add("Where", {builder.add("Less", {x, one}), near, far});
}

// The weights of image/resize_weights.h: f64 (out, in), whole numbers in units of 2^-22.
std::string fixed_weights(Nodes& nodes, ResizeFilter filter, const Side& side) {
  OnnxBuilder& builder = nodes.builder();
  const std::string zero = nodes.real(0), half = nodes.real(0.5), one = nodes.real(1);
  const std::string in = nodes.cast(side.in, f64);
  const std::string scale = nodes.divide(in, nodes.cast(side.resized, f64));
  const std::string filter_scale = nodes.max(scale, one);
  const std::string support = nodes.multiply(filter_scale, nodes.real(detail::resize_support(filter)));
  std::string index = side.positions(nodes);
  if (side.padded)
    index = nodes.min(nodes.max(index, nodes.whole(0)), nodes.subtract(side.resized, nodes.whole(1)));
  const std::string position = nodes.add(nodes.cast(nodes.reshape(index, {side.out, 1}), f64), half);
  const std::string center = nodes.multiply(position, scale);
  const std::string begin = nodes.floor(nodes.max(nodes.add(nodes.subtract(center, support), half), zero));
  const std::string end = nodes.min(nodes.floor(nodes.add(nodes.add(center, support), half)), in);
  const std::string pixel = nodes.range(in);
  const std::string distance = builder.add(
      "Abs",
      {nodes.multiply(nodes.add(nodes.subtract(pixel, center), half), nodes.divide(one, filter_scale))});
  const std::string outside =
      builder.add("Or", {builder.add("Less", {pixel, begin}), builder.add("GreaterOrEqual", {pixel, end})});
  const std::string raw = builder.add("Where", {outside, zero, filter_value(nodes, filter, distance)});
  const std::string sum =
      builder.add("ReduceSum", {raw, builder.integers({1})}, {onnx_attribute("keepdims", std::int64_t{1})});
  const std::string scaled =
      nodes.multiply(nodes.divide(raw, sum), nodes.real(1 << detail::resize_weight_bits));
  if (filter == ResizeFilter::bilinear) return nodes.floor(nodes.add(scaled, half));
  const std::string magnitude = nodes.floor(nodes.add(builder.add("Abs", {scaled}), half));
  return nodes.multiply(magnitude, builder.add("Sign", {scaled}));
}

// Weights that are not negative, below 2^24, as three digits of 8 bits below each other: u8 (3 out, in).
// Products of bytes are exact and fast.
std::string digits_of(Nodes& nodes, const std::string& weights) {
  const std::string byte = nodes.real(256), two_bytes = nodes.real(65536);
  const std::string high = nodes.floor(nodes.divide(weights, two_bytes));
  const std::string rest = nodes.subtract(weights, nodes.multiply(high, two_bytes));
  const std::string middle = nodes.floor(nodes.divide(rest, byte));
  const std::string low = nodes.subtract(rest, nodes.multiply(middle, byte));
  return nodes.cast(nodes.concat({high, middle, low}, 0), OnnxType::u8);
}

// The sums of weight · level, from the products with the three digits along an axis.
std::string join_digits(Nodes& nodes, const std::string& products, std::int64_t axis) {
  const auto digits = nodes.builder().add_split(
      "Split", {products}, 3, {onnx_attribute("axis", axis), onnx_attribute("num_outputs", std::int64_t{3})});
  const std::string byte = nodes.whole(256, i32);
  const std::string upper = nodes.add(nodes.multiply(digits[0], byte), digits[1]);
  return nodes.add(nodes.multiply(upper, byte), digits[2]);
}

// One pass of a resize of u8 pixels: (lines, in) → (lines, out), or (in, lines) → (out, lines) if
// `along_rows` is false. Rounded to 8 bits as resized_level() does.
std::string resample(Nodes& nodes, ResizeFilter filter, const Side& side, const std::string& pixels,
                     bool along_rows) {
  const std::string weights = fixed_weights(nodes, filter, side);
  const auto sums = [&](const std::string& part) {
    const std::string digits = digits_of(nodes, part);
    if (along_rows)
      return join_digits(nodes,
                         nodes.builder().add("MatMulInteger", {pixels, nodes.transpose(digits, {1, 0})}), 1);
    return join_digits(nodes, nodes.builder().add("MatMulInteger", {digits, pixels}), 0);
  };
  std::string sum;
  if (filter == ResizeFilter::bilinear) {
    sum = sums(weights);
  } else {  // bicubic weights have both signs
    const std::string zero = nodes.real(0);
    sum =
        nodes.subtract(sums(nodes.max(weights, zero)), sums(nodes.max(nodes.subtract(zero, weights), zero)));
  }
  sum =
      nodes.max(nodes.add(sum, nodes.whole(1 << (detail::resize_weight_bits - 1), i32)), nodes.whole(0, i32));
  const std::string level = nodes.divide(sum, nodes.whole(1 << detail::resize_weight_bits, i32));
  return nodes.cast(nodes.min(level, nodes.whole(255, i32)), OnnxType::u8);
}

// Half of the margin, rounded as Python's round() does: halves to even.
std::string middle(Nodes& nodes, const std::string& margin) {
  const std::string four = nodes.whole(4);
  const std::string remainder = nodes.subtract(margin, nodes.multiply(nodes.divide(margin, four), four));
  return nodes.add(nodes.divide(margin, nodes.whole(2)), nodes.divide(remainder, nodes.whole(3)));
}

// fit_letterbox(): one side is resized to the output's, the other is shorter and centered.
void fit_letterbox(Nodes& nodes, Side& rows, Side& columns) {
  OnnxBuilder& builder = nodes.builder();
  const std::string height = nodes.cast(rows.in, f64), width = nodes.cast(columns.in, f64);
  const std::string ratio = nodes.divide(width, height);
  const auto out_height = static_cast<double>(rows.out), out_width = static_cast<double>(columns.out);
  const std::string out_ratio = nodes.real(out_width / out_height);
  const auto rounded = [&](const std::string& quotient, double side) {
    const std::string length = builder.add("Round", {nodes.multiply(quotient, nodes.real(side))});
    return nodes.max(nodes.cast(length, i64), nodes.whole(1));
  };
  rows.resized = builder.add("Where", {builder.add("Less", {out_ratio, ratio}),
                                       rounded(nodes.divide(height, width), out_width), rows.resized});
  columns.resized = builder.add(
      "Where", {builder.add("Less", {ratio, out_ratio}), rounded(ratio, out_height), columns.resized});
  for (Side* const side : {&rows, &columns}) {
    side->first =
        nodes.subtract(nodes.whole(0), middle(nodes, nodes.subtract(nodes.whole(side->out), side->resized)));
    side->padded = true;
  }
}

// Whether a position of a padded side is in the padding: (out).
std::string is_padding(Nodes& nodes, const Side& side) {
  const std::string index = side.positions(nodes);
  OnnxBuilder& builder = nodes.builder();
  return builder.add("Or", {builder.add("Less", {index, nodes.whole(0)}),
                            builder.add("GreaterOrEqual", {index, side.resized})});
}

// u8 [height, width, 3] of any size → u8 [out height, 3, out width], as transform_photo() does.
std::string fit_photo(Nodes& nodes, const PhotoRecipe& recipe, const std::string& image) {
  PhotoRecipe known{.height = recipe.height,
                    .width = recipe.width,
                    .filter = recipe.filter,
                    .fit = recipe.fit,
                    .shorter_side = recipe.shorter_side,
                    .padding = recipe.padding};
  check(recipe.fit != PhotoFit::crop && known == recipe,
        "[export] expected a transform that resizes, crops the center or pads, got '{}'", to_string(recipe));
  Side rows{.in = nodes.size(image, 0), .first = nodes.whole(0), .out = recipe.height};
  Side columns{.in = nodes.size(image, 1), .first = nodes.whole(0), .out = recipe.width};
  rows.resized = nodes.whole(recipe.height);
  columns.resized = nodes.whole(recipe.width);
  if (recipe.fit == PhotoFit::center) {
    const std::string side = nodes.whole(recipe.shorter_side);
    rows.resized = nodes.max(side, nodes.divide(nodes.multiply(side, rows.in), columns.in));
    columns.resized = nodes.max(side, nodes.divide(nodes.multiply(side, columns.in), rows.in));
    rows.first = middle(nodes, nodes.subtract(rows.resized, nodes.whole(recipe.height)));
    columns.first = middle(nodes, nodes.subtract(columns.resized, nodes.whole(recipe.width)));
  }
  if (recipe.fit == PhotoFit::letterbox) fit_letterbox(nodes, rows, columns);
  // (height, width, 3) → (height · 3, width) → (height · 3, out width) → (height, 3 · out width)
  OnnxBuilder& builder = nodes.builder();
  const std::string width = builder.add("Unsqueeze", {columns.in, builder.integers({0})});
  const std::string lines = builder.add(
      "Reshape", {nodes.transpose(image, {0, 2, 1}), nodes.concat({builder.integers({-1}), width}, 0)});
  const std::string narrow = resample(nodes, recipe.filter, columns, lines, true);
  const std::string fitted =
      resample(nodes, recipe.filter, rows, nodes.reshape(narrow, {-1, 3 * columns.out}), false);
  const std::string image_rows = nodes.reshape(fitted, {rows.out, 3, columns.out});
  if (recipe.fit != PhotoFit::letterbox) return image_rows;
  const std::string padding = builder.add(
      "Or", {nodes.reshape(is_padding(nodes, rows), {rows.out, 1, 1}), is_padding(nodes, columns)});
  return builder.add("Where", {padding, nodes.cast(nodes.whole(recipe.padding), OnnxType::u8), image_rows});
}

// The shares of the input pixels in every output pixel of resize_area(): f64 (out, in).
std::string area_weights(Nodes& nodes, const std::string& size, std::int64_t out) {
  const std::string in = nodes.cast(size, f64), index = column(nodes, out);
  const std::string ratio = nodes.divide(in, nodes.real(static_cast<double>(out)));
  const std::string begin = nodes.multiply(index, ratio),
                    end = nodes.multiply(nodes.add(index, nodes.real(1)), ratio);
  const std::string pixel = nodes.range(in), next = nodes.add(pixel, nodes.real(1));
  const std::string part = nodes.subtract(nodes.min(end, next), nodes.max(begin, pixel));
  return nodes.divide(nodes.max(part, nodes.real(0)), ratio);
}

// u8 [height, width, 3] of any size → u8 [out height, channels, out width]: gray or RGB, resized by area.
std::string fit_small(Nodes& nodes, const ModelInfo& info, const std::string& image) {
  OnnxBuilder& builder = nodes.builder();
  const std::string height = nodes.size(image, 0), width = nodes.size(image, 1);
  std::string pixels;  // f64 [height, channels, width]
  if (info.channels == 1) {
    // to_gray(): (19595 R + 38470 G + 7471 B + 32768) / 65536
    const std::vector<std::int32_t> luma{19595, 38470, 7471};
    const std::string parts = nodes.multiply(
        nodes.cast(image, f64), builder.doubles({3}, std::vector<double>(luma.begin(), luma.end())));
    const std::string sum = builder.add("ReduceSum", {parts, builder.integers({2})},
                                        {onnx_attribute("keepdims", std::int64_t{1})});
    const std::string level = nodes.floor(nodes.divide(nodes.add(sum, nodes.real(32768)), nodes.real(65536)));
    pixels = nodes.transpose(level, {0, 2, 1});
  } else {
    pixels = nodes.transpose(nodes.cast(image, f64), {0, 2, 1});
  }
  const std::string flat = builder.add(
      "Reshape",
      {pixels,
       nodes.concat({builder.add("Unsqueeze", {height, builder.integers({0})}), builder.integers({-1})}, 0)});
  const std::string low = builder.add("MatMul", {area_weights(nodes, height, info.height), flat});
  const std::string lines = builder.add(
      "Reshape",
      {low,
       nodes.concat({builder.integers({-1}), builder.add("Unsqueeze", {width, builder.integers({0})})}, 0)});
  const std::string small =
      builder.add("MatMul", {lines, nodes.transpose(area_weights(nodes, width, info.width), {1, 0})});
  const std::string level = nodes.floor(nodes.add(small, nodes.real(area_rounding)));
  const std::string clipped = nodes.min(nodes.max(level, nodes.real(0)), nodes.real(255));
  return nodes.reshape(nodes.cast(clipped, OnnxType::u8), {info.height, info.channels, info.width});
}

// One value per channel: f32 [channels, 1, 1].
std::string per_channel(OnnxBuilder& builder, const char* name, const std::vector<float>& values) {
  return builder.array(name, {std::ssize(values), 1, 1}, values);
}

}  // namespace

std::string add_preprocessing(OnnxBuilder& builder, const ModelInfo& info, const std::string& image) {
  check(info.expects_photos() || info.channels == 1 || info.channels == 3,
        "[export] expected a model of 1 or 3 channels, got {}", info.channels);
  Nodes nodes(builder);
  const std::string fitted =
      info.expects_photos() ? fit_photo(nodes, info.photo_recipe(), image) : fit_small(nodes, info, image);
  const std::string planes = nodes.transpose(fitted, {1, 0, 2});
  const std::string levels =
      nodes.cast(nodes.reshape(planes, {1, info.channels, info.height, info.width}), OnnxType::f32);
  if (info.architecture.expects_flat_input())
    return nodes.multiply(levels, builder.number(info.pixel_scale, OnnxType::f32));
  std::vector<float> scale, shift;  // as normalize_images()
  for (std::int64_t c = 0; c < info.channels; ++c) {
    scale.push_back(1 / (255 * info.norm.stddev[c]));
    shift.push_back(-info.norm.mean[c] / info.norm.stddev[c]);
  }
  const std::string scaled = nodes.multiply(levels, per_channel(builder, "pixel_scale", scale));
  return nodes.add(scaled, per_channel(builder, "pixel_shift", shift));
}

std::string describe_preprocessing(const ModelInfo& info) {
  std::string text;
  if (info.expects_photos()) {
    const PhotoRecipe recipe = info.photo_recipe();
    const char* const filter = recipe.filter == ResizeFilter::bicubic ? "bicubic" : "bilinear";
    const std::string resized =
        fmt::format("resized to {}x{} ({}, antialiased, as Pillow)", recipe.width, recipe.height, filter);
    text = recipe.fit == PhotoFit::center
               ? fmt::format("shorter side resized to {} ({}, antialiased, as Pillow), center crop {}x{}",
                             recipe.shorter_side, filter, recipe.width, recipe.height)
           : recipe.fit == PhotoFit::letterbox
               ? fmt::format("{} with the aspect ratio kept, centered on gray {}", resized, recipe.padding)
               : resized;
  } else {
    text = fmt::format("{}, resized to {}x{} by area", info.channels == 1 ? "gray" : "RGB", info.width,
                       info.height);
  }
  if (info.architecture.expects_flat_input()) return text + fmt::format(", times {}", info.pixel_scale);
  const auto channels = static_cast<std::size_t>(info.channels);
  return text + fmt::format(", divided by 255, minus ({}), divided by ({})",
                            fmt::join(info.norm.mean, info.norm.mean + channels, ", "),
                            fmt::join(info.norm.stddev, info.norm.stddev + channels, ", "));
}

}  // namespace tandem
