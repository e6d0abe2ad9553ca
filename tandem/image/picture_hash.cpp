#include "tandem/image/picture_hash.h"

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/resize_area.h"

namespace tandem {
namespace {

constexpr int columns = 12, rows = 11;  // of the means that are compared

// Shares of the width and height that are cut off.
struct Margins {
  double left, top, right, bottom;
};

// The whole picture, all sides and two sides that meet. Then a copy that lacks up to 2 % on any sides is at
// most about 1 % off one of them.
constexpr Margins margins[] = {{0, 0, 0, 0},       {.012, .012, .012, .012}, {.015, .015, 0, 0},
                               {.015, 0, 0, .015}, {0, .015, .015, 0},       {0, 0, .015, .015}};
static_assert(std::size(margins) == std::tuple_size_v<PictureHashes>);

// Sums of brightness from the upper left corner to any point of the picture, also between pixels.
class Sums {
 public:
  explicit Sums(const Image& gray)
      : height_(gray.height), width_(gray.width), sums_(size_t((height_ + 1) * (width_ + 1))) {
    for (int64_t y = 0; y < height_; ++y)
      for (int64_t x = 0; x < width_; ++x)
        at(y + 1, x + 1) = at(y, x + 1) + at(y + 1, x) - at(y, x) + double(gray.at(y, x));
  }

  double to(double y, double x) const {
    const int64_t row = std::min(int64_t(y), height_ - 1), column = std::min(int64_t(x), width_ - 1);
    const double v = y - double(row), u = x - double(column);
    return (1 - v) * ((1 - u) * at(row, column) + u * at(row, column + 1)) +
           v * ((1 - u) * at(row + 1, column) + u * at(row + 1, column + 1));
  }

 private:
  double& at(int64_t y, int64_t x) { return sums_[size_t(y * (width_ + 1) + x)]; }
  double at(int64_t y, int64_t x) const { return sums_[size_t(y * (width_ + 1) + x)]; }

  int64_t height_, width_;
  std::vector<double> sums_;
};

using Means = std::array<double, size_t(columns) * rows>;

struct Box {
  double left, top, width, height;
};

Means means_inside(const Sums& sums, const Box& box) {
  // At the corners of the parts.
  std::array<double, size_t(columns + 1) * (rows + 1)> corners;
  for (int y = 0; y <= rows; ++y)
    for (int x = 0; x <= columns; ++x)
      corners[size_t(y * (columns + 1) + x)] =
          sums.to(box.top + box.height * y / rows, box.left + box.width * x / columns);
  const double area = box.width * box.height / (columns * rows);
  Means means;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      const double* const upper = &corners[size_t(y * (columns + 1) + x)];
      const double* const lower = upper + columns + 1;
      means[size_t(y * columns + x)] = (lower[1] - lower[0] - upper[1] + upper[0]) / area;
    }
  return means;
}

PictureHash hash_of(const Means& means) {
  // Levels of 255. In plain areas, where compression noise is all there is, the bits are 0.
  constexpr double min_difference = 1.5;
  PictureHash hash;
  int bits = 0;
  const auto add = [&](int from, int to) {
    const int at = bits % PictureHash::parts * PictureHash::part_bits + bits / PictureHash::parts;
    if (means[size_t(to)] > means[size_t(from)] + min_difference)
      hash.words[size_t(at / 64)] |= std::uint64_t(1) << (at % 64);
    ++bits;
  };
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x + 1 < columns; ++x) add(y * columns + x, y * columns + x + 1);
  for (int y = 0; y + 1 < rows; ++y)
    for (int x = 0; x < columns; ++x) add(y * columns + x, (y + 1) * columns + x);
  static_assert(rows * (columns - 1) + columns * (rows - 1) <= PictureHash::parts * PictureHash::part_bits);
  return hash;
}

}  // namespace

PictureHashes hash_picture(const Image& image) {
  return hash_picture(image, double(image.height), double(image.width));
}

PictureHashes hash_picture(const Image& image, double height, double width) {
  constexpr int64_t max_side = 128;  // more pixels change nothing
  check(image.height > 0 && image.width > 0 && height > 0 && width > 0,
        "[hash] expected an image with pixels, got {}x{}", image.width, image.height);
  const int64_t rows_left = std::min(image.height, max_side), columns_left = std::min(image.width, max_side);
  const bool large = image.height > max_side || image.width > max_side;
  const Sums sums(to_gray(large ? resize_area(image, rows_left, columns_left) : image));
  height *= double(rows_left) / double(image.height), width *= double(columns_left) / double(image.width);
  PictureHashes hashes;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const Margins& cut = margins[i];
    hashes[i] =
        hash_of(means_inside(sums, {cut.left * width, cut.top * height, (1 - cut.left - cut.right) * width,
                                    (1 - cut.top - cut.bottom) * height}));
  }
  return hashes;
}

}  // namespace tandem
