// Shapes: up to eight sizes held in place, so that a tensor handle never allocates for its geometry.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tandem/core/error.h"

namespace tandem {

inline constexpr int max_rank = 8;

// A short list of dimensions: a shape's sizes, or the strides that go with them.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);
  static Dims filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return values_[axis]; }
  std::int64_t& operator[](int axis) { return values_[axis]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }
  std::int64_t back() const { return values_[rank_ - 1]; }
  std::string to_string() const;  // "[2, 3]"

  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 protected:
  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

// Sizes are checked when the shape is made: none is negative and their product fits 63 bits.
class Shape : public Dims {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(Dims(sizes)) {}
  explicit Shape(std::span<const std::int64_t> sizes) : Shape(Dims(sizes)) {}
  explicit Shape(const Dims& sizes);

  std::int64_t numel() const { return numel_; }
  std::int64_t operator[](int axis) const { return values_[axis]; }

 private:
  std::int64_t numel_ = 1;
};

// The strides, in elements, of a row-major tensor of this shape.
Dims contiguous_strides(const Shape& shape);

// Axis −1 is the last one; out of range is an Error that names the operation.
int normalize_axis(int axis, int rank, const char* op);

// The shape two operands broadcast to, as NumPy does it.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace tandem
