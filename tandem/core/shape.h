// Shapes of up to eight dimensions, stored inline so that a tensor never allocates memory for its shape.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace tandem {

/// The maximum number of dimensions of a tensor.
inline constexpr int max_rank = 8;

/// One integer per dimension: sizes, strides or axes.
class Dims {
 public:
  Dims() = default;
  /// One dimension, so that sum(x, 1) and x.reshape(-1) need no braces.
  Dims(std::int64_t value) : values_{value}, rank_(1) {}
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  /// Throws Error for more than max_rank values.
  explicit Dims(std::span<const std::int64_t> values);
  static Dims filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return values_[axis]; }
  std::int64_t& operator[](int axis) { return values_[axis]; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  std::int64_t back() const { return values_[rank_ - 1]; }
  std::string to_string() const;  ///< "[2, 3]"

  friend bool operator==(const Dims& a, const Dims& b);
  /// Writes to_string().
  friend std::ostream& operator<<(std::ostream& out, const Dims& dims);

 protected:
  std::int64_t values_[max_rank] = {};
  int rank_ = 0;
};

/// The sizes of a tensor. The constructors throw Error when a size is negative or the number of elements
/// exceeds 63 bits.
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

/// The strides, in elements, of a row-major tensor of this shape.
Dims contiguous_strides(const Shape& shape);

/// Maps a negative axis (−1 is the last) to its index. Throws Error, naming `op`, when it is out of range.
int normalize_axis(int axis, int rank, const char* op);

/// The shape two operands broadcast to, by NumPy's rules. Throws Error, naming `op`, when they do not match.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace tandem
