#include "tandem/core/shape.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "tandem/core/check.h"

namespace tandem {

Dims::Dims(std::span<const std::int64_t> values) {
  check(values.size() <= max_rank, "[shape] expected at most {} dimensions, got {}", max_rank, values.size());
  std::copy(values.begin(), values.end(), values_);
  rank_ = static_cast<int>(values.size());
}

Dims Dims::filled(int rank, std::int64_t value) {
  expect(rank >= 0 && rank <= max_rank);
  Dims dims;
  dims.rank_ = rank;
  std::fill_n(dims.values_, rank, value);
  return dims;
}

std::string Dims::to_string() const {
  return fmt::format("[{}]", fmt::join(begin(), end(), ", "));
}

bool operator==(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  return out << dims.to_string();
}

Shape::Shape(const Dims& sizes) : Dims(sizes) {
  bool overflow = false;
  bool empty = false;
  for (std::int64_t size : sizes) {
    check(size >= 0, "[shape] expected sizes of 0 or more, got {}", sizes);
    empty = empty || size == 0;
    overflow = overflow || __builtin_mul_overflow(numel_, size, &numel_);
  }
  if (empty) numel_ = 0;
  check(empty || !overflow, "[shape] {} has more elements than 63 bits can count", sizes);
}

Dims contiguous_strides(const Shape& shape) {
  Dims strides = Dims::filled(shape.rank(), 1);
  if (shape.numel() == 0) return strides;  // unused, and the products might overflow
  for (int axis = shape.rank() - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

int normalize_axis(int axis, int rank, const char* op) {
  check(axis >= -rank && axis < rank, "[{}] expected an axis from {} to {}, got {}", op, -rank, rank - 1,
        axis);
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  const int rank = std::max(a.rank(), b.rank());
  Dims result = Dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t size_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t size_b = i <= b.rank() ? b[b.rank() - i] : 1;
    check(size_a == size_b || size_a == 1 || size_b == 1,
          "[{}] expected shapes that broadcast together, got {} and {}", op, a, b);
    result[rank - i] = size_a == 1 ? size_b : size_a;
  }
  return Shape(result);
}

}  // namespace tandem
