#include "tandem/ops/conv/conv2d.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/conv_shards.h"
#include "tandem/ops/conv/depthwise.h"
#include "tandem/ops/conv/depthwise_bf16.h"
#include "tandem/ops/conv/im2col_conv.h"
#include "tandem/ops/conv/window_kernel.h"
#include "tandem/ops/conv/winograd.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace detail {
namespace {

Conv2dPlan as_f32(Conv2dPlan plan) {
  plan.dtype = DType::f32;
  return plan;
}

using CpuTypes = TypeList<float, double>;

template <class T>
Buffer packed_depthwise_weight(const Conv2dPlan& plan, const std::byte* weight) {
  Buffer packed = make_scratch<T>(sizes_of(plan).weight);
  pack_depthwise_weight(plan, as<T>(packed), reinterpret_cast<const T*>(weight));
  return packed;
}
Buffer widened_depthwise_weight(const Conv2dPlan& plan, const std::byte* weight) {
  return packed_depthwise_weight<float>(plan, to_f32(weight, sizes_of(plan).weight).data());
}
bool is_bf16_depthwise(const Conv2dPlan& plan) {
  return plan.dtype == DType::bf16 && is_depthwise(plan);
}

}  // namespace

template <>
void conv2d_kernel<Backend::cpu>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                 const std::byte* weight, const std::byte* bias, StreamView stream) {
  if (uses_block_conv(plan)) {
    const Buffer packed = make_scratch<std::byte>(block_conv_weight_bytes(plan, MatrixType::bf16)),
                 wide_bias = to_f32(bias, plan.filters);
    pack_block_conv_weight(plan, MatrixType::bf16, packed.data(), weight);
    return block_conv2d({.plan = plan,
                         .isa = matrix_isa(MatrixType::bf16),
                         .x = x,
                         .packed = packed.data(),
                         .y = y,
                         .epilogue = {.bias = as<const float>(wide_bias)}});
  }
  if (is_bf16_depthwise(plan)) {
    const Buffer wide_bias = to_f32(bias, plan.filters);
    return depthwise_conv2d(plan, reinterpret_cast<BFloat16*>(y), reinterpret_cast<const BFloat16*>(x),
                            as<float>(widened_depthwise_weight(plan, weight)),
                            DepthwiseEpilogue{.bias = as<const float>(wide_bias)});
  }
  if (plan.dtype == DType::bf16) {
    const Conv2dSizes sizes = sizes_of(plan);
    const Buffer wide_x = to_f32(x, sizes.x), wide_weight = to_f32(weight, sizes.weight),
                 wide_bias = to_f32(bias, plan.filters), wide_y = make_scratch<float>(sizes.y);
    conv2d_kernel<Backend::cpu>(as_f32(plan), wide_y.data(), wide_x.data(), wide_weight.data(),
                                wide_bias.data(), stream);
    return to_bf16(y, wide_y, sizes.y);
  }
  if (is_winograd_profitable(plan))
    return winograd_conv2d_once(plan, reinterpret_cast<float*>(y), reinterpret_cast<const float*>(x),
                                reinterpret_cast<const float*>(weight),
                                {.bias = reinterpret_cast<const float*>(bias)});
  on_dtype(CpuTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    if (is_depthwise(plan))
      return depthwise_conv2d(plan, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x),
                              as<T>(packed_depthwise_weight<T>(plan, weight)),
                              RowEpilogue<T>{.bias = reinterpret_cast<const T*>(bias)});
    const Buffer packed = make_scratch<T>(im2col_weight_size<T>(plan));
    pack_im2col_weight(plan, as<T>(packed), reinterpret_cast<const T*>(weight));
    im2col_conv2d<T>(plan, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), as<T>(packed),
                     {.bias = reinterpret_cast<const T*>(bias)});
  });
}

template <>
void conv2d_input_gradient_kernel<Backend::cpu>(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                                                const std::byte* weight, StreamView stream) {
  if (has_block_gradients(plan))
    return block_input_gradient(plan, matrix_isa(MatrixType::bf16), dx, dy, weight);
  if (is_bf16_depthwise(plan))
    return depthwise_input_gradient(plan, reinterpret_cast<BFloat16*>(dx),
                                    reinterpret_cast<const BFloat16*>(dy),
                                    as<float>(widened_depthwise_weight(plan, weight)));
  if (plan.dtype == DType::bf16) {
    const Conv2dSizes sizes = sizes_of(plan);
    const Buffer wide_dy = to_f32(dy, sizes.y), wide_weight = to_f32(weight, sizes.weight),
                 wide_dx = make_scratch<float>(sizes.x);
    conv2d_input_gradient_kernel<Backend::cpu>(as_f32(plan), wide_dx.data(), wide_dy.data(),
                                               wide_weight.data(), stream);
    return to_bf16(dx, wide_dx, sizes.x);
  }
  if (is_winograd_profitable(plan))
    return winograd_input_gradient(plan, reinterpret_cast<float*>(dx), reinterpret_cast<const float*>(dy),
                                   reinterpret_cast<const float*>(weight));
  on_dtype(CpuTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    if (is_depthwise(plan))
      return depthwise_input_gradient(plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy),
                                      as<T>(packed_depthwise_weight<T>(plan, weight)));
    im2col_input_gradient(plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy),
                          reinterpret_cast<const T*>(weight));
  });
}

template <>
void conv2d_weight_gradient_kernel<Backend::cpu>(const Conv2dPlan& plan, std::byte* dweight,
                                                 const std::byte* dy, const std::byte* x, StreamView stream) {
  if (has_block_gradients(plan))
    return block_weight_gradient(plan, matrix_isa(MatrixType::bf16), reinterpret_cast<float*>(dweight), dy,
                                 x);
  if (plan.dtype == DType::bf16) {
    const Conv2dSizes sizes = sizes_of(plan);
    const Buffer wide_dy = to_f32(dy, sizes.y), wide_x = to_f32(x, sizes.x);
    return conv2d_weight_gradient_kernel<Backend::cpu>(as_f32(plan), dweight, wide_dy.data(), wide_x.data(),
                                                       stream);
  }
  if (is_winograd_profitable(plan))
    return winograd_weight_gradient(plan, reinterpret_cast<float*>(dweight),
                                    reinterpret_cast<const float*>(dy), reinterpret_cast<const float*>(x));
  on_dtype(CpuTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    if (is_depthwise(plan))
      return depthwise_weight_gradient(plan, reinterpret_cast<T*>(dweight), reinterpret_cast<const T*>(dy),
                                       reinterpret_cast<const T*>(x));
    im2col_weight_gradient(plan, reinterpret_cast<T*>(dweight), reinterpret_cast<const T*>(dy),
                           reinterpret_cast<const T*>(x));
  });
}

Conv2dPlan conv2d_plan(const Shape& x, DType dtype, const Shape& weight, const Conv2dOptions& options) {
  check(is_floating(dtype), "[conv2d] expected a floating dtype, got {}", name_of(dtype));
  check(x.rank() == 4 && weight.rank() == 4,
        "[conv2d] expected x (n, height, width, channels) and weight (out, kernel y, kernel x, channels / "
        "groups), got {} and {}",
        x, weight);
  const std::int64_t channels = x[3], filters = weight[0], groups = options.groups;
  check(groups >= 1 && channels >= 1 && filters >= 1 && channels % groups == 0 && filters % groups == 0,
        "[conv2d] expected groups that divide the channels and the filters, got {} groups of {} channels and "
        "{} filters",
        groups, channels, filters);
  check(weight[3] == channels / groups,
        "[conv2d] expected a weight of {} channels for x {} in {} groups, got weight {}", channels / groups,
        x, groups, weight);
  const YX in{x[1], x[2]}, kernel{weight[1], weight[2]};
  check(in.y >= 1 && in.x >= 1, "[conv2d] expected images of at least 1x1, got {}x{}", in.y, in.x);
  return {.images = x[0],
          .channels = channels,
          .filters = filters,
          .groups = groups,
          .in = in,
          .kernel = kernel,
          .out = window_output_size("conv2d", in, kernel, options.window),
          .window = options.window,
          .dtype = dtype,
          .precision = matmul_precision()};
}

namespace {

// Images in bf16 also accept an f32 weight and bias.
void check_parameter(const char* name, const Tensor& x, const Tensor& parameter) {
  check(parameter.dtype() == x.dtype() || (x.dtype() == DType::bf16 && parameter.dtype() == DType::f32),
        "[conv2d] expected a {} of {}{}, got {}", name, name_of(x.dtype()),
        x.dtype() == DType::bf16 ? " or f32" : "", name_of(parameter.dtype()));
}

Tensor compute_forward(const Conv2dPlan& plan, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor y = Tensor::empty(output_shape(plan), plan.dtype, x.device());
  for_each_vendor_shard(plan, y, {&x},
                        [&](const Conv2dPlan& shard, const Tensor& to, std::span<const Tensor> from) {
                          on_backend(to.device(), "conv2d", [&]<Backend B>() {
                            conv2d_kernel<B>(shard, to.bytes(), from[0].bytes(), weight.bytes(), bias.bytes(),
                                             current_stream(to.device()));
                          });
                        });
  return y;
}

Tensor input_gradient(const Conv2dPlan& plan, const Tensor& g, const Tensor& weight) {
  Tensor dx = Tensor::empty({plan.images, plan.in.y, plan.in.x, plan.channels}, plan.dtype, g.device());
  for_each_vendor_shard(plan, dx, {&g},
                        [&](const Conv2dPlan& shard, const Tensor& to, std::span<const Tensor> from) {
                          on_backend(to.device(), "conv2d", [&]<Backend B>() {
                            conv2d_input_gradient_kernel<B>(shard, to.bytes(), from[0].bytes(),
                                                            weight.bytes(), current_stream(to.device()));
                          });
                        });
  return dx;
}

void write_weight_gradient(const Conv2dPlan& plan, const Tensor& dweight, const Tensor& g, const Tensor& x) {
  if (plan.images == 0) return clear(dweight);
  on_backend(g.device(), "conv2d", [&]<Backend B>() {
    conv2d_weight_gradient_kernel<B>(plan, dweight.bytes(), g.bytes(), x.bytes(), current_stream(g.device()));
  });
}

Tensor weight_gradient(const Conv2dPlan& plan, const Tensor& g, const Tensor& x) {
  const Shape shape{plan.filters, plan.kernel.y, plan.kernel.x, plan.channels / plan.groups};
  const DType dtype = plan.dtype == DType::bf16 ? DType::f32 : plan.dtype;
  const ShardPart* const part = shard_part();
  if (!part) {
    Tensor dweight = Tensor::empty(shape, dtype, g.device());
    write_weight_gradient(plan, dweight, g, x);
    return dweight;
  }
  return stack_shards(
      *part, shape, {.op = "conv2d", .size = plan.images, .dtype = dtype, .device = g.device()},
      [&](const Tensor& to, IndexRange images) {
        Conv2dPlan shard = plan;
        shard.images = images.count();
        write_aligned(to, [&](const Tensor& dweight) {
          write_weight_gradient(shard, dweight, aligned_slice(g, images), aligned_slice(x, images));
        });
      });
}

}  // namespace
}  // namespace detail

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  using namespace detail;
  common_device("conv2d", {&x, &weight});
  const Conv2dPlan plan = conv2d_plan(x, weight.shape(), options);
  check_parameter("weight", x, weight);
  if (bias.defined()) {
    common_device("conv2d", {&x, &bias});
    check_parameter("bias", x, bias);
    check(bias.rank() == 1 && bias.size(0) == plan.filters, "[conv2d] expected bias ({}), got {}",
          plan.filters, bias.shape());
  }
  const Tensor images = x.detach().contiguous();
  const Tensor filters = cast(weight.detach(), plan.dtype).contiguous();
  const Tensor added_bias = bias.defined() ? cast(bias.detach(), plan.dtype).contiguous() : Tensor();
  Tensor y = compute_forward(plan, images, filters, added_bias);
  const bool x_grad = wants_grad(x);
  const bool weight_grad = wants_grad(weight);
  const bool bias_grad = bias.defined() && wants_grad(bias);
  if (x_grad || weight_grad || bias_grad) {
    record(
        y, "conv2d", {&x, &weight, &bias},
        [plan, images = weight_grad ? images : Tensor(), filters = x_grad ? filters : Tensor(), bias_grad,
         weight_dtype = weight.dtype(), bias_dtype = bias_grad ? bias.dtype() : plan.dtype](const Tensor& g) {
          const Tensor dy = g.contiguous();
          return Gradients{
              filters.defined() ? input_gradient(plan, dy, filters) : Tensor(),
              images.defined() ? cast(weight_gradient(plan, dy, images), weight_dtype) : Tensor(),
              bias_grad ? broadcast_gradient(cast(dy, bias_dtype), {plan.filters}) : Tensor()};
        });
    trace_window(options.window);
    trace_option("groups", Dims(options.groups));
  }
  return y;
}

}  // namespace tandem
