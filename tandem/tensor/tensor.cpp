#include "tandem/tensor/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/convert.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

std::size_t bytes_of(const Shape& shape, DType dtype) {
  std::size_t bytes = 0;
  check(!__builtin_mul_overflow(static_cast<std::size_t>(shape.numel()), size_of(dtype), &bytes) &&
            bytes <= static_cast<std::size_t>(INT64_MAX),
        "[tensor] {} of {} has more bytes than 63 bits can count", shape, name_of(dtype));
  return bytes;
}

// The number of elements of memory that a tensor spans, from its first to its last.
std::int64_t extent(const Shape& shape, const Dims& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return shape.numel() == 0 ? 0 : last + 1;
}

// Host values of one dtype as another, by the rules of cast().
void convert_values(std::byte* to, DType to_dtype, const std::byte* from, DType from_dtype,
                    std::int64_t count) {
  on_dtype(AllTypes{}, to_dtype, "tensor", [&]<class To>() {
    on_dtype(AllTypes{}, from_dtype, "tensor", [&]<class From>() {
      const From* const values = reinterpret_cast<const From*>(from);
      To* const results = reinterpret_cast<To*>(to);
      for (std::int64_t i = 0; i < count; ++i)
        results[i] = detail::Cast<To>{}(detail::convert<ComputeType<From>>(values[i]));
    });
  });
}

Tensor from_doubles(const std::vector<double>& values, const Shape& shape, DType dtype, Device device) {
  const Tensor host = Tensor::empty(shape, dtype);
  convert_values(host.bytes(), dtype, reinterpret_cast<const std::byte*>(values.data()), DType::f64,
                 shape.numel());
  return host.to(device);
}

void check_defined(const Tensor& tensor, const char* op) {
  check(tensor.defined(), "[{}] expected a tensor, got an undefined one", op);
}

// Of the sizes that are not 0 or −1; 1 if it is too large.
std::int64_t positive_product(const Dims& sizes) {
  std::int64_t product = 1;
  for (int axis = 0; axis < sizes.rank(); ++axis)
    if (sizes[axis] > 0 && __builtin_mul_overflow(product, sizes[axis], &product)) return 1;
  return product;
}

}  // namespace

Tensor::Tensor(std::initializer_list<double> values, DType dtype, Device device)
    : Tensor(from_doubles(values, {static_cast<std::int64_t>(values.size())}, dtype, device)) {}

Tensor::Tensor(std::initializer_list<std::initializer_list<double>> rows, DType dtype, Device device) {
  const std::size_t columns = rows.size() > 0 ? rows.begin()->size() : 0;
  std::vector<double> values;
  for (const auto& row : rows) {
    check(row.size() == columns, "[tensor] expected rows of {} values, got one of {}", columns, row.size());
    values.insert(values.end(), row.begin(), row.end());
  }
  *this = from_doubles(values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)},
                       dtype, device);
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  require_available(device);
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.strides_ = contiguous_strides(shape);
  tensor.dtype_ = dtype;
  tensor.buffer_ = std::allocate_shared<Buffer>(detail::RecyclingAllocator<Buffer>(), bytes_of(shape, dtype),
                                                current_stream(device));
  return tensor;
}

Tensor Tensor::borrow(void* data, const Shape& shape, const Dims& strides, DType dtype, Device device,
                      std::shared_ptr<void> owner) {
  require_available(device);
  check(data != nullptr || shape.numel() == 0, "[tensor] expected elements, got a null pointer");
  check(owner != nullptr, "[tensor] expected an owner of borrowed elements, got none");
  check(strides.rank() == shape.rank() &&
            std::ranges::all_of(strides, [](std::int64_t stride) { return stride >= 0; }),
        "[tensor] expected a stride of 0 or more for each axis of {}, got {}", shape, strides);
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.strides_ = strides;
  tensor.dtype_ = dtype;
  const std::size_t bytes = static_cast<std::size_t>(extent(shape, strides)) * size_of(dtype);
  tensor.buffer_ = std::make_shared<Buffer>(static_cast<std::byte*>(data), bytes, device, std::move(owner));
  return tensor;
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, const Shape& shape, DType dtype, Device device) {
  check(bytes.size() == bytes_of(shape, dtype), "[tensor] expected {} values for shape {}, got {}",
        shape.numel(), shape, bytes.size() / size_of(dtype));
  Tensor tensor = empty(shape, dtype, device);
  if (bytes.empty()) return tensor;
  const StreamView stream = current_stream(device);
  on_backend(device, "tensor",
             [&]<Backend B>() { copy_bytes<B>(tensor.bytes(), bytes.data(), bytes.size(), stream); });
  stream.synchronize();  // the caller may free its memory
  return tensor;
}

void Tensor::copy_to_host(std::span<std::byte> to, DType dtype) const {
  check_defined(*this, "tensor");
  check(to.size() == bytes_of(shape_, dtype), "[tensor] expected a tensor of {} element, got shape {}",
        to.size() / size_of(dtype), shape_);
  if (to.empty()) return;
  const Tensor host = detach().contiguous().cpu();
  if (dtype == dtype_)
    std::memcpy(to.data(), host.bytes(), to.size());
  else
    convert_values(to.data(), dtype, host.bytes(), dtype_, numel());
}

void Tensor::throw_wrong_dtype(DType dtype) const {
  fail("[data] expected a tensor of {}, got {}", name_of(dtype), name_of(dtype_));
}

Device Tensor::device() const {
  return buffer_ ? buffer_->device() : cpu_device;
}

std::byte* Tensor::bytes() const {
  return buffer_ && buffer_->data() ? buffer_->data() + offset_ * size_of(dtype_) : nullptr;
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] != 1 && strides_[axis] != expected) return shape_.numel() == 0;
    expected *= shape_[axis];
  }
  return true;
}

Tensor Tensor::view(const Shape& shape, const Dims& strides, std::int64_t offset) const {
  Tensor result = detach();
  result.shape_ = shape;
  result.strides_ = strides;
  result.offset_ = offset;
  return result;
}

Tensor Tensor::reshape(const Dims& sizes) const {
  check_defined(*this, "reshape");
  Dims inferred = sizes;
  std::int64_t known = 1;
  int unknown_axis = -1;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] == -1 && unknown_axis < 0)
      unknown_axis = axis;
    else
      check(sizes[axis] >= 0 && !__builtin_mul_overflow(known, sizes[axis], &known),
            "[reshape] expected sizes of 0 or more and at most one -1, got {}", sizes);
  }
  if (unknown_axis >= 0)
    inferred[unknown_axis] = known > 0 ? numel() / known : positive_product(shape_) / positive_product(sizes);
  const Shape shape(inferred);
  check(shape.numel() == numel(), "[reshape] expected a shape of {} elements, got {} for {}", numel(), sizes,
        shape_);
  const Tensor source = is_contiguous() ? *this : detach().contiguous();
  Tensor result = source.view(shape, contiguous_strides(shape), source.offset_);
  if (wants_grad(*this))
    record(result, "reshape", {this},
           [original = shape_](const Tensor& g) { return Gradients{g.reshape(original)}; });
  return result;
}

Tensor Tensor::permute(const Dims& axes) const {
  check_defined(*this, "permute");
  check(axes.rank() == rank(), "[permute] expected {} axes for shape {}, got {}", rank(), shape_, axes);
  Dims sizes = Dims::filled(rank(), 0), strides = sizes, inverse = Dims::filled(rank(), -1);
  for (int i = 0; i < rank(); ++i) {
    const int axis = normalize_axis(static_cast<int>(axes[i]), rank(), "permute");
    check(inverse[axis] == -1, "[permute] expected every axis once, got {}", axes);
    sizes[i] = shape_[axis];
    strides[i] = strides_[axis];
    inverse[axis] = i;
  }
  Tensor result = view(Shape(sizes), strides, offset_);
  if (wants_grad(*this)) {
    record(result, "permute", {this}, [inverse](const Tensor& g) { return Gradients{g.permute(inverse)}; });
    trace_option("inverse", inverse);
  }
  return result;
}

Tensor Tensor::transpose(int axis_a, int axis_b) const {
  check_defined(*this, "transpose");
  Dims axes = Dims::filled(rank(), 0);
  for (int i = 0; i < rank(); ++i) axes[i] = i;
  std::swap(axes[normalize_axis(axis_a, rank(), "transpose")],
            axes[normalize_axis(axis_b, rank(), "transpose")]);
  return permute(axes);
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const {
  check_defined(*this, "slice");
  axis = normalize_axis(axis, rank(), "slice");
  check(0 <= begin && begin <= end && end <= shape_[axis],
        "[slice] expected 0 <= begin <= end <= {} on axis {}, got {} and {}", shape_[axis], axis, begin, end);
  Dims sizes = shape_;
  sizes[axis] = end - begin;
  Tensor result = view(Shape(sizes), strides_, offset_ + begin * strides_[axis]);
  if (wants_grad(*this))
    record(result, "slice", {this}, [original = shape_, axis, begin, end](const Tensor& g) {
      Tensor whole = Tensor::empty(original, g.dtype(), g.device());
      clear(whole);
      copy_into(whole.slice(axis, begin, end), g);
      return Gradients{whole};
    });
  return result;
}

Tensor Tensor::operator[](std::int64_t index) const {
  check_defined(*this, "index");
  check(rank() > 0, "[index] expected a tensor of one axis or more, got a scalar");
  check(index >= -shape_[0] && index < shape_[0], "[index] expected an index from {} to {}, got {}",
        -shape_[0], shape_[0] - 1, index);
  if (index < 0) index += shape_[0];
  Dims sizes = Dims::filled(rank() - 1, 0), strides = sizes;
  for (int axis = 1; axis < rank(); ++axis) {
    sizes[axis - 1] = shape_[axis];
    strides[axis - 1] = strides_[axis];
  }
  Tensor result = view(Shape(sizes), strides, offset_ + index * strides_[0]);
  if (wants_grad(*this))
    record(result, "index", {this}, [original = shape_, index](const Tensor& g) {
      const Tensor whole = Tensor::empty(original, g.dtype(), g.device());
      clear(whole);
      copy_into(whole[index], g);
      return Gradients{whole};
    });
  return result;
}

Tensor Tensor::broadcast_view(const Shape& shape) const {
  check(broadcast_shapes(shape_, shape, "broadcast") == shape,
        "[broadcast] expected a shape that broadcasts to {}, got {}", shape, shape_);
  Dims strides = Dims::filled(shape.rank(), 0);
  const int added = shape.rank() - rank();
  for (int axis = 0; axis < rank(); ++axis) strides[axis + added] = shape_[axis] == 1 ? 0 : strides_[axis];
  return view(shape, strides, offset_);
}

Tensor Tensor::contiguous() const {
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::clone() const {
  check_defined(*this, "clone");
  Tensor result = empty(shape_, dtype_, device());
  copy_into(result, *this);
  if (wants_grad(*this)) record(result, "clone", {this}, [](const Tensor& g) { return Gradients{g}; });
  return result;
}

Tensor Tensor::to(Device device) const {
  const Device here = this->device();
  if (device == here) return *this;
  check_defined(*this, "to");
  require_available(device);
  // The memory that the tensor spans is copied as a whole, and the strides are kept.
  const std::int64_t spanned = extent(shape_, strides_);
  Tensor result = view(shape_, strides_, 0);
  result.buffer_ = std::make_shared<Buffer>(spanned * size_of(dtype_), current_stream(device));
  const Device gpu = device.is_cuda() ? device : here;
  const StreamView stream = current_stream(gpu);
  if (spanned > 0) {
    on_backend(gpu, "to", [&]<Backend B>() {
      if (device.is_cuda() && here.is_cuda())
        current_stream(here).synchronize();  // the source may still be written
      copy_bytes<B>(result.bytes(), bytes(), spanned * size_of(dtype_), stream);
    });
    stream.synchronize();  // the host may access its memory next
  }
  if (wants_grad(*this))
    record(result, "to", {this}, [here](const Tensor& g) { return Gradients{g.to(here)}; });
  return result;
}

Tensor& Tensor::set_requires_grad(bool value) {
  check_defined(*this, "requires_grad");
  check(!value || is_floating(dtype_), "[requires_grad] expected a floating dtype, got {}", name_of(dtype_));
  check(!node_ || node_->inputs.empty(),
        "[requires_grad] expected a leaf, got the result of '{}'; detach() it first",
        node_ ? node_->name : "");
  if (value && !node_) {
    node_ = std::make_shared<Node>();
    node_->shape = shape_;
  }
  if (!node_) return *this;
  node_->requires_grad = value;
  if (!value) node_->grad = Tensor();
  return *this;
}

Tensor Tensor::grad() const {
  return node_ ? node_->grad : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) const {
  check(requires_grad(), "[grad] expected a tensor that requires a gradient");
  node_->grad = gradient;
}

Tensor Tensor::detach() const {
  Tensor result = *this;
  result.node_.reset();
  return result;
}

Device common_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors) {
    check(tensor->defined(), "[{}] expected a tensor, got an undefined one", op);
    check(tensor->device() == first.device(), "[{}] expected all tensors on the same device, got {} and {}",
          op, first.device().to_string(), tensor->device().to_string());
  }
  return first.device();
}

DType common_dtype(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors)
    check(tensor->dtype() == first.dtype(), "[{}] expected tensors of one dtype, got {} and {}", op,
          name_of(first.dtype()), name_of(tensor->dtype()));
  return first.dtype();
}

}  // namespace tandem
