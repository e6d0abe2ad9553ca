#include "tandem/ops/arithmetic.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic_kernel.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {

template <>
void arithmetic_kernel<Backend::cpu>(Arithmetic operation, DType dtype, const Layout<3>& layout,
                                     std::byte* out, const std::byte* a, const std::byte* b, StreamView) {
  on_arithmetic(operation, [&](auto functor) {
    on_dtype(AllTypes{}, dtype, "arithmetic", [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
                      reinterpret_cast<const T*>(b));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor compute(detail::Arithmetic operation, const char* name, const Tensor& a, const Tensor& b) {
  const Device device = common_device(name, {&a, &b});
  const DType dtype = common_dtype(name, {&a, &b});
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), name);
  Tensor out = Tensor::empty(shape, dtype, device);
  const auto layout = detail::make_layout<3>(
      shape, {out.strides(), a.broadcast_view(shape).strides(), b.broadcast_view(shape).strides()});
  on_backend(device, name, [&]<Backend B>() {
    detail::arithmetic_kernel<B>(operation, dtype, layout, out.bytes(), a.bytes(), b.bytes(),
                                 current_stream(device));
  });
  return out;
}

// Integer division by 0 traps on some CPUs, so it is checked first; CUDA returns an unspecified value.
void check_divisors(const Tensor& b) {
  if (is_floating(b.dtype()) || b.device().is_cuda()) return;
  on_dtype(TypeList<std::uint8_t, std::int32_t, std::int64_t>{}, b.dtype(), "divide", [&]<class T>() {
    const Tensor dense = b.contiguous();
    const T* values = dense.data<T>();
    check(std::find(values, values + dense.numel(), T{0}) == values + dense.numel(),
          "[divide] expected integer divisors other than 0, got 0");
  });
}

// A scalar tensor, which broadcasts to any shape.
Tensor scalar_like(const Tensor& tensor, double value, const char* name) {
  common_device(name, {&tensor});
  check(is_floating(tensor.dtype()) || value == std::trunc(value),
        "[{}] expected a scalar without a fraction for a tensor of {}, got {}", name, name_of(tensor.dtype()),
        value);
  return full({}, value, tensor.dtype(), tensor.device());
}

// True when the memory of both, from the first to the last element, has a common byte.
bool overlap(const Tensor& a, const Tensor& b) {
  const auto end_of = [](const Tensor& x) {
    std::int64_t last = 0;
    for (int axis = 0; axis < x.rank(); ++axis) last += (x.shape()[axis] - 1) * x.strides()[axis];
    return x.bytes() + (last + 1) * static_cast<std::int64_t>(size_of(x.dtype()));
  };
  return a.numel() > 0 && b.numel() > 0 && a.bytes() < end_of(b) && b.bytes() < end_of(a);
}

// a = a op b. Every element is read before it is written, by the same thread, so `a` may be operand and
// result of the kernel; an operand that overlaps `a` differently is copied first.
Tensor& compute_in_place(detail::Arithmetic operation, const char* name, Tensor& a, const Tensor& b) {
  const Device device = common_device(name, {&a, &b});
  const DType dtype = common_dtype(name, {&a, &b});
  check(!wants_grad(a) && !wants_grad(b),
        "[{}] expected tensors that require no gradient, or a NoGrad scope: in-place operations are not "
        "recorded",
        name);
  check(broadcast_shapes(a.shape(), b.shape(), name) == a.shape(),
        "[{}] expected an operand that broadcasts to {}, got {}", name, a.shape(), b.shape());
  for (int axis = 0; axis < a.rank(); ++axis)
    check(a.strides()[axis] != 0 || a.shape()[axis] <= 1,
          "[{}] expected a tensor whose elements have their own memory, got a broadcast view", name);
  const bool same = a.bytes() == b.bytes() && a.shape() == b.shape() && a.strides() == b.strides();
  const Tensor operand = (!same && overlap(a, b) ? b.detach().clone() : b).broadcast_view(a.shape());
  const auto layout = detail::make_layout<3>(a.shape(), {a.strides(), a.strides(), operand.strides()});
  on_backend(device, name, [&]<Backend B>() {
    detail::arithmetic_kernel<B>(operation, dtype, layout, a.bytes(), a.bytes(), operand.bytes(),
                                 current_stream(device));
  });
  return a;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor out = compute(detail::Arithmetic::add, "add", a, b);
  if (wants_grad(a) || wants_grad(b))
    record(out, "add", {&a, &b},
           [shape_a = a.shape(), shape_b = b.shape(), need_a = wants_grad(a),
            need_b = wants_grad(b)](const Tensor& g) {
             return Gradients{need_a ? detail::broadcast_gradient(g, shape_a) : Tensor(),
                              need_b ? detail::broadcast_gradient(g, shape_b) : Tensor()};
           });
  return out;
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  Tensor out = compute(detail::Arithmetic::subtract, "subtract", a, b);
  if (wants_grad(a) || wants_grad(b))
    record(out, "subtract", {&a, &b},
           [shape_a = a.shape(), shape_b = b.shape(), need_a = wants_grad(a),
            need_b = wants_grad(b)](const Tensor& g) {
             return Gradients{need_a ? detail::broadcast_gradient(g, shape_a) : Tensor(),
                              need_b ? detail::broadcast_gradient(negate(g), shape_b) : Tensor()};
           });
  return out;
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  Tensor out = compute(detail::Arithmetic::multiply, "multiply", a, b);
  if (wants_grad(a) || wants_grad(b))
    record(out, "multiply", {&a, &b},
           [shape_a = a.shape(), shape_b = b.shape(), a = wants_grad(b) ? a.detach() : Tensor(),
            b = wants_grad(a) ? b.detach() : Tensor()](const Tensor& g) {
             return Gradients{b.defined() ? detail::broadcast_gradient(multiply(g, b), shape_a) : Tensor(),
                              a.defined() ? detail::broadcast_gradient(multiply(g, a), shape_b) : Tensor()};
           });
  return out;
}

Tensor divide(const Tensor& a, const Tensor& b) {
  check_divisors(b);
  Tensor out = compute(detail::Arithmetic::divide, "divide", a, b);
  if (wants_grad(a) || wants_grad(b))
    record(out, "divide", {&a, &b},
           [shape_a = a.shape(), b = b.detach(), quotient = wants_grad(b) ? out.detach() : Tensor(),
            need_a = wants_grad(a)](const Tensor& g) {
             const Tensor g_over_b = divide(g, b);
             return Gradients{need_a ? detail::broadcast_gradient(g_over_b, shape_a) : Tensor(),
                              quotient.defined() ? detail::broadcast_gradient(
                                                       negate(multiply(g_over_b, quotient)), b.shape())
                                                 : Tensor()};
           });
  return out;
}

Tensor add(const Tensor& a, double b) {
  return add(a, scalar_like(a, b, "add"));
}

Tensor subtract(const Tensor& a, double b) {
  return subtract(a, scalar_like(a, b, "subtract"));
}

Tensor subtract(double a, const Tensor& b) {
  return subtract(scalar_like(b, a, "subtract"), b);
}

Tensor multiply(const Tensor& a, double b) {
  return multiply(a, scalar_like(a, b, "multiply"));
}

Tensor divide(const Tensor& a, double b) {
  return divide(a, scalar_like(a, b, "divide"));
}

Tensor divide(double a, const Tensor& b) {
  return divide(scalar_like(b, a, "divide"), b);
}

Tensor negate(const Tensor& a) {
  return multiply(a, -1);
}

Tensor& Tensor::operator+=(const Tensor& b) {
  return compute_in_place(detail::Arithmetic::add, "+=", *this, b);
}

Tensor& Tensor::operator-=(const Tensor& b) {
  return compute_in_place(detail::Arithmetic::subtract, "-=", *this, b);
}

Tensor& Tensor::operator*=(const Tensor& b) {
  return compute_in_place(detail::Arithmetic::multiply, "*=", *this, b);
}

Tensor& Tensor::operator/=(const Tensor& b) {
  common_device("/=", {this, &b});
  check_divisors(b);
  return compute_in_place(detail::Arithmetic::divide, "/=", *this, b);
}

Tensor& Tensor::operator+=(double b) {
  return *this += scalar_like(*this, b, "+=");
}

Tensor& Tensor::operator-=(double b) {
  return *this -= scalar_like(*this, b, "-=");
}

Tensor& Tensor::operator*=(double b) {
  return *this *= scalar_like(*this, b, "*=");
}

Tensor& Tensor::operator/=(double b) {
  return *this /= scalar_like(*this, b, "/=");
}

}  // namespace tandem
