// Tensor: an n-dimensional array on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/core/shape.h"
#include "tandem/device/device.h"

namespace tandem {

class Buffer;  // device/buffer.h
struct Node;   // tape.h

/// A handle to a shape, a dtype and shared device memory. Copying a Tensor copies the handle, and views share
/// memory; a const Tensor does not make its elements const. Operations return new tensors on the device of
/// their operands, and nothing is copied between devices implicitly. Invalid arguments throw Error. Different
/// threads may use copies of a handle; concurrent writes to the same elements are the caller's
/// responsibility.
class Tensor {
 public:
  /// An undefined tensor.
  Tensor() = default;
  /// A vector of these values: Tensor({1., 2., 3.}), Tensor({0, 2}, DType::i64). Values are converted as by
  /// cast().
  Tensor(std::initializer_list<double> values, DType dtype = DType::f32, Device device = cpu_device);
  /// A matrix, row by row: Tensor({{1., 2.}, {3., 4.}}). Throws Error when the rows differ in length.
  Tensor(std::initializer_list<std::initializer_list<double>> rows, DType dtype = DType::f32,
         Device device = cpu_device);

  /// A row-major tensor of uninitialized memory.
  static Tensor empty(const Shape& shape, DType dtype, Device device = cpu_device);
  /// A copy of host values in row-major order. Throws Error when their number does not match the shape.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = cpu_device) {
    return from_bytes(std::as_bytes(values), shape, dtype_of<T>, device);
  }
  /// The same for a vector.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = cpu_device) {
    return from(std::span<const T>(values), shape, device);
  }
  /// A tensor of memory that is owned elsewhere, such as an array of another library. Nothing is copied;
  /// `owner`, which is required, is kept until the last handle is gone. Throws Error without one, for a null
  /// pointer to elements, and for strides, in elements, that are negative or not one per axis.
  static Tensor borrow(void* data, const Shape& shape, const Dims& strides, DType dtype, Device device,
                       std::shared_ptr<void> owner);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }  ///< in elements
  int rank() const { return shape_.rank(); }
  /// The size of one axis; −1 is the last.
  std::int64_t size(int axis) const { return shape_[normalize_axis(axis, rank(), "size")]; }
  std::int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const;       ///< the CPU for an undefined tensor
  bool is_contiguous() const;  ///< row-major without gaps

  /// A pointer to the first element, in device memory. Throws Error when T does not match the dtype.
  template <class T>
  T* data() const {
    if (dtype_of<T> != dtype_) [[unlikely]]
      throw_wrong_dtype(dtype_of<T>);
    return reinterpret_cast<T*>(bytes());
  }
  /// The same, untyped. Null when there are no elements.
  std::byte* bytes() const;

  /// A tensor of the given sizes, one of which may be −1 to be inferred; of a tensor without rows (0, …) as
  /// if it had one. Shares memory when this tensor is contiguous, otherwise copies. Differentiable.
  Tensor reshape(const Dims& sizes) const;
  /// A view with reordered axes. Differentiable.
  Tensor permute(const Dims& axes) const;
  /// A view with two axes swapped, by default the last two. Differentiable.
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  /// A view of the indices [begin, end) of one axis. Differentiable.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  /// A view of one index of the first axis, without that axis; −1 is the last. Differentiable.
  Tensor operator[](std::int64_t index) const;
  /// A view that repeats axes of size 1 with stride 0. Not differentiable.
  Tensor broadcast_view(const Shape& shape) const;

  /// This tensor if it is contiguous, otherwise a contiguous copy. Differentiable.
  Tensor contiguous() const;
  /// This tensor if it is on `device`, otherwise a copy there. Synchronizes with the host. Differentiable.
  Tensor to(Device device) const;
  /// The same for a name: x.to("cuda:0"). Throws Error when there is no such device.
  Tensor to(std::string_view device) const { return to(parse_device(device)); }
  Tensor cpu() const { return to(cpu_device); }
  /// A contiguous copy. Differentiable.
  Tensor clone() const;

  /// The elements in row-major order, copied to the host and converted to T as by cast().
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<std::size_t>(numel()));
    copy_to_host(std::as_writable_bytes(std::span(values)), dtype_of<T>);
    return values;
  }
  /// The value of a tensor of one element, converted to T as by cast(). Throws Error when there are more.
  template <class T>
  T item() const {
    T value{};
    copy_to_host(std::as_writable_bytes(std::span(&value, 1)), dtype_of<T>);
    return value;
  }

  /// In-place arithmetic on the elements, which copies and views of this handle share; defined in
  /// ops/arithmetic.cpp. The operand is broadcast to this shape. Nothing is recorded: throws Error when this
  /// tensor or the operand requires a gradient and there is no NoGrad, and for other dtypes, devices or
  /// shapes.
  Tensor& operator+=(const Tensor& b);
  Tensor& operator-=(const Tensor& b);
  Tensor& operator*=(const Tensor& b);
  Tensor& operator/=(const Tensor& b);
  Tensor& operator+=(double b);
  Tensor& operator-=(double b);
  Tensor& operator*=(double b);
  Tensor& operator/=(double b);

  /// backward(*this) of ops/backward.h, where it is defined: loss.backward().
  void backward() const;

  /// True for a leaf marked by set_requires_grad() and for results computed from one.
  bool requires_grad() const;
  /// Marks a leaf, so that backward() accumulates its gradient in grad(). Copies of a marked handle share the
  /// mark: `false` freezes them all and drops their gradient, `true` marks them again. Throws Error for an
  /// integer dtype or the result of a recorded operation.
  Tensor& set_requires_grad(bool value = true);
  /// The accumulated gradient; undefined before the first backward().
  Tensor grad() const;
  /// Replaces the gradient; an undefined tensor resets it. Shared by all copies of the handle.
  void set_grad(const Tensor& gradient) const;
  /// A tensor that shares the memory but not the tape.
  Tensor detach() const;

  /// The node on the autograd tape (tape.h); null when no gradient was ever required.
  const std::shared_ptr<Node>& node() const { return node_; }
  void set_node(std::shared_ptr<Node> node) { node_ = std::move(node); }

 private:
  static Tensor from_bytes(std::span<const std::byte> bytes, const Shape& shape, DType dtype, Device device);
  void copy_to_host(std::span<std::byte> to, DType dtype) const;
  [[noreturn]] void throw_wrong_dtype(DType dtype) const;
  Tensor view(const Shape& shape, const Dims& strides, std::int64_t offset) const;

  Shape shape_;
  Dims strides_;
  std::int64_t offset_ = 0;  // in elements
  DType dtype_ = DType::f32;
  std::shared_ptr<Buffer> buffer_;
  std::shared_ptr<Node> node_;
};

/// Writes values, shape, dtype and device. Of more than 200 elements only the ends of each axis are written,
/// with … between them; only those are copied from the device.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// The device of all tensors. Throws Error when they differ:
/// "[add] expected all tensors on the same device, got cuda:0 and cpu".
Device common_device(const char* op, std::initializer_list<const Tensor*> tensors);
/// The dtype of all tensors. Throws Error when they differ.
DType common_dtype(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace tandem
