#include "tandem/ops/conv/prepacked_conv.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/conv_shards.h"
#include "tandem/ops/conv/depthwise.h"
#include "tandem/ops/conv/depthwise_bf16.h"
#include "tandem/ops/conv/im2col_conv.h"
#include "tandem/ops/conv/winograd.h"
#include "tandem/ops/fused_activation_cpu.h"

namespace tandem::detail {

Conv2dPlan weight_plan(const Tensor& weight, const Conv2dOptions& options, DType dtype) {
  const Window& window = options.window;
  const std::int64_t height = window.dilation.y * (weight.size(1) - 1) + 1,
                     width = window.dilation.x * (weight.size(2) - 1) + 1;
  return conv2d_plan({1, height, width, weight.size(3) * options.groups}, dtype, weight.shape(), options);
}

namespace {

// Without instructions for bf16 the CPU computes it in f32: then the packed weight is f32 too.
Tensor pack_weight(const Tensor& weight, const Conv2dOptions& options) {
  if (const Conv2dPlan plan = weight_plan(weight, options, weight.dtype()); uses_block_conv(plan)) {
    Tensor packed = Tensor::empty({block_conv_weight_bytes(plan, MatrixType::bf16)}, DType::u8);
    pack_block_conv_weight(plan, MatrixType::bf16, packed.bytes(), weight.bytes());
    return packed;
  }
  const Tensor wide = weight.dtype() == DType::bf16 ? cast(weight, DType::f32) : weight;
  const Conv2dPlan plan = weight_plan(wide, options, wide.dtype());
  if (is_winograd_applicable(plan)) {
    Tensor transformed = Tensor::empty({winograd_weight_size(plan)}, DType::f32);
    transform_winograd_weight(plan, transformed.data<float>(), wide.data<float>());
    return transformed;
  }
  return on_dtype(TypeList<float, double>{}, wide.dtype(), "conv2d", [&]<class T>() {
    if (is_depthwise(plan)) {
      Tensor packed = Tensor::empty({wide.numel()}, wide.dtype());
      pack_depthwise_weight(plan, packed.data<T>(), wide.data<T>());
      return packed;
    }
    Tensor packed = Tensor::empty({im2col_weight_size<T>(plan)}, wide.dtype());
    pack_im2col_weight(plan, packed.data<T>(), wide.data<T>());
    return packed;
  });
}

void activate(FusedActivation activation, float* values, std::int64_t count) {
  parallel_for(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t>()
                  __attribute__((always_inline)) { activate_row(activation, values + begin, end - begin); });
  });
}

}  // namespace

template <>
void prepack_weight<Backend::cpu>(PrepackedConv2d& conv) {
  conv.weight = pack_weight(conv.weight, conv.options);
}

PrepackedConv2d prepack_conv2d(const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                               DType dtype) {
  const Device device = common_device("conv2d", {&weight});
  check(is_floating(dtype) && is_floating(weight.dtype()),
        "[conv2d] expected a floating dtype of images and weight, got {} and {}", name_of(dtype),
        name_of(weight.dtype()));
  check(weight.rank() == 4, "[conv2d] expected weight (out, kernel y, kernel x, channels / groups), got {}",
        weight.shape());
  PrepackedConv2d conv{.options = options,
                       .weight_shape = weight.shape(),
                       .dtype = dtype,
                       .weight = cast(weight.detach(), dtype).contiguous()};
  if (bias.defined()) {
    common_device("conv2d", {&weight, &bias});
    check(bias.rank() == 1 && bias.size(0) == weight.size(0), "[conv2d] expected bias ({}), got {}",
          weight.size(0), bias.shape());
    conv.bias = cast(bias.detach(), dtype == DType::f64 ? DType::f64 : DType::f32).contiguous();
    if (device.is_cuda() && dtype == DType::bf16) conv.bf16_bias = cast(conv.bias, DType::bf16);
  }
  on_backend(device, "conv2d", [&]<Backend B>() { prepack_weight<B>(conv); });
  return conv;
}

BlockConv prepacked_block_conv(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                               const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue) {
  return {.plan = plan,
          .isa = matrix_isa(MatrixType::bf16),
          .x = x,
          .packed = conv.weight.bytes(),
          .y = y,
          .epilogue = {.bias = reinterpret_cast<const float*>(epilogue.bias),
                       .residual = epilogue.residual,
                       .activation = epilogue.activation}};
}

template <>
void prepacked_conv2d_kernel<Backend::cpu>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                           const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue,
                                           StreamView stream) {
  if (uses_block_conv(plan)) return block_conv2d(prepacked_block_conv(plan, y, x, conv, epilogue));
  if (plan.dtype == DType::bf16 && is_depthwise(plan))
    return depthwise_conv2d(plan, reinterpret_cast<BFloat16*>(y), reinterpret_cast<const BFloat16*>(x),
                            conv.weight.data<float>(),
                            {.bias = reinterpret_cast<const float*>(epilogue.bias),
                             .residual = reinterpret_cast<const BFloat16*>(epilogue.residual),
                             .activation = epilogue.activation});
  if (plan.dtype == DType::bf16) {
    const Conv2dSizes sizes = sizes_of(plan);
    const Buffer wide_x = to_f32(x, sizes.x), wide_residual = to_f32(epilogue.residual, sizes.y),
                 wide_y = make_scratch<float>(sizes.y);
    Conv2dPlan wide = plan;
    wide.dtype = DType::f32;
    prepacked_conv2d_kernel<Backend::cpu>(
        wide, wide_y.data(), wide_x.data(), conv,
        {.bias = epilogue.bias, .residual = wide_residual.data(), .activation = epilogue.activation}, stream);
    return to_bf16(y, wide_y, sizes.y);
  }
  on_dtype(TypeList<float, double>{}, plan.dtype, "conv2d", [&]<class T>() {
    const RowEpilogue<T> row_epilogue{.bias = reinterpret_cast<const T*>(epilogue.bias),
                                      .residual = reinterpret_cast<const T*>(epilogue.residual),
                                      .activation = epilogue.activation};
    const T* weight = conv.weight.data<T>();
    if (is_depthwise(plan))
      return depthwise_conv2d(plan, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), weight,
                              row_epilogue);
    if constexpr (std::same_as<T, float>)
      if (is_winograd_applicable(plan)) {
        winograd_conv2d(plan, reinterpret_cast<float*>(y), reinterpret_cast<const float*>(x), weight,
                        row_epilogue);
        if (needs_argument(epilogue.activation))
          activate(epilogue.activation, reinterpret_cast<float*>(y), sizes_of(plan).y);
        return;
      }
    im2col_conv2d<T>(plan, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), weight, row_epilogue);
  });
}

Tensor prepacked_conv2d(const PrepackedConv2d& conv, const Tensor& x, const Tensor& residual,
                        FusedActivation activation) {
  const Device device = common_device("conv2d", {&x, &conv.weight});
  check(x.dtype() == conv.dtype, "[conv2d] expected images of {}, got {}", name_of(conv.dtype),
        name_of(x.dtype()));
  const Conv2dPlan plan = conv2d_plan(x, conv.weight_shape, conv.options);
  const Tensor images = x.detach().contiguous();
  Tensor y = Tensor::empty(output_shape(plan), plan.dtype, device);
  Tensor added;
  if (residual.defined()) {
    common_device("conv2d", {&x, &residual});
    common_dtype("conv2d", {&x, &residual});
    check(residual.shape() == y.shape(), "[conv2d] expected a residual of shape {}, got {}", y.shape(),
          residual.shape());
    added = residual.detach().contiguous();
  }
  for_each_vendor_shard(plan, y, {&images, &added},
                        [&](const Conv2dPlan& shard, const Tensor& to, std::span<const Tensor> from) {
                          const Conv2dEpilogue epilogue{.bias = conv.bias.bytes(),
                                                        .bf16_bias = conv.bf16_bias.bytes(),
                                                        .residual = from[1].bytes(),
                                                        .activation = activation};
                          on_backend(device, "conv2d", [&]<Backend B>() {
                            prepacked_conv2d_kernel<B>(shard, to.bytes(), from[0].bytes(), conv, epilogue,
                                                       current_stream(device));
                          });
                        });
  return y;
}

}  // namespace tandem::detail
