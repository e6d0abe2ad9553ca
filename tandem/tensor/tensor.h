// Tensor: a shape, a dtype and a device over shared memory. Copying a Tensor copies the handle; views share
// memory. Every operation returns a new tensor on the device of its operands; nothing moves between devices
// silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/device/buffer.h"
#include "tandem/device/device.h"

namespace tandem {

struct Node;  // tape.h

class Tensor {
 public:
  Tensor() = default;  // no tensor; defined() is false

  // Uninitialised memory, row-major.
  static Tensor empty(const Shape& shape, DType dtype, Device device = cpu_device);
  // A copy of host values in row-major order.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = cpu_device) {
    return from_bytes(std::as_bytes(values), shape, dtype_of<T>, device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = cpu_device) {
    return from(std::span<const T>(values), shape, device);
  }

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  std::int64_t size(int axis) const { return shape_[normalize_axis(axis, rank(), "size")]; }
  std::int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const { return buffer_ ? buffer_->device() : cpu_device; }
  bool is_contiguous() const;  // row-major without gaps

  // The first element; T must be the dtype's.
  template <class T>
  T* data() const {
    expect(dtype_of<T> == dtype_);
    return reinterpret_cast<T*>(bytes());
  }
  std::byte* bytes() const {  // null when there are no elements
    return buffer_ && buffer_->data() ? buffer_->data() + offset_ * size_of(dtype_) : nullptr;
  }

  // Views, with gradients. One size of reshape may be −1: whatever is left. reshape() copies where a view
  // cannot express the result.
  Tensor reshape(const Dims& sizes) const;
  Tensor permute(const Dims& axes) const;
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  // A view that repeats axes of size 1 (stride 0), without a gradient.
  Tensor broadcast_view(const Shape& shape) const;

  // Row-major without gaps; itself when it is that already.
  Tensor contiguous() const;
  // On `device`; itself when it is there already.
  Tensor to(Device device) const;
  Tensor cpu() const { return to(cpu_device); }
  Tensor clone() const;

  // The elements in row-major order, on the host.
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<std::size_t>(numel()));
    copy_to_host(std::as_writable_bytes(std::span(values)), dtype_of<T>);
    return values;
  }
  // The value of a tensor of one element.
  template <class T>
  T item() const {
    T value{};
    copy_to_host(std::as_writable_bytes(std::span(&value, 1)), dtype_of<T>);
    return value;
  }

  // Automatic differentiation (tape.h). A leaf that requires a gradient collects it in grad() during
  // backward().
  bool requires_grad() const { return node_ != nullptr; }
  Tensor& set_requires_grad(bool value = true);
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;
  Tensor detach() const;  // the same memory, outside the tape

  const std::shared_ptr<Node>& node() const { return node_; }
  void set_node(std::shared_ptr<Node> node) { node_ = std::move(node); }

 private:
  static Tensor from_bytes(std::span<const std::byte> bytes, const Shape& shape, DType dtype, Device device);
  void copy_to_host(std::span<std::byte> to, DType dtype) const;
  Tensor view(const Shape& shape, const Dims& strides, std::int64_t offset) const;

  Shape shape_;
  Dims strides_;
  std::int64_t offset_ = 0;  // in elements
  DType dtype_ = DType::f32;
  std::shared_ptr<Buffer> buffer_;
  std::shared_ptr<Node> node_;
};

// Error unless all live on one device: "[add] expected all tensors on the same device, got cuda:0 and cpu".
Device common_device(const char* op, std::initializer_list<const Tensor*> tensors);
// Error unless all have one dtype.
DType common_dtype(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace tandem
