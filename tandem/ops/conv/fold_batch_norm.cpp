#include "tandem/ops/conv/fold_batch_norm.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"

namespace tandem::detail {

template <>
void fold_batch_norm_kernel<Backend::cpu>(const FoldBatchNormPlan& plan, StreamView) {
  constexpr std::int64_t min_values = 1 << 14;  // per thread
  const std::int64_t grain =
      std::max<std::int64_t>(min_values / std::max<std::int64_t>(plan.filter_size, 1), 1);
  on_dtype(TypeList<float, double>{}, plan.from, "fold_batch_norm", [&]<class From>() {
    on_dtype(FloatTypes{}, plan.to, "fold_batch_norm", [&]<class To>() {
      const auto* const weight = reinterpret_cast<const From*>(plan.weight);
      auto* const new_weight = reinterpret_cast<To*>(plan.new_weight);
      auto* const new_bias = reinterpret_cast<ComputeType<To>*>(plan.new_bias);
      parallel_for(plan.filters, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t filter = begin; filter < end; ++filter) {
          const ScaleShift<From> affine = scale_shift_of<From>(plan, filter);
          new_bias[filter] = convert<ComputeType<To>>(affine.shift);
          const From* const from = weight + filter * plan.filter_size;
          To* const to = new_weight + filter * plan.filter_size;
          with_simd([&]<std::size_t>() __attribute__((always_inline)) {
            for (std::int64_t i = 0; i < plan.filter_size; ++i) to[i] = convert<To>(from[i] * affine.scale);
          });
        }
      });
    });
  });
}

FoldedConv fold_batch_norm(const Tensor& weight, const BatchNormParameters& norm, DType dtype) {
  const auto [gamma, beta, mean, variance, epsilon] = norm;
  const Device device = common_device("fold_batch_norm", {&weight, &gamma, &beta, &mean, &variance});
  const DType from = common_dtype("fold_batch_norm", {&weight, &gamma, &beta, &mean, &variance});
  check((from == DType::f32 || from == DType::f64) && is_floating(dtype),
        "[fold_batch_norm] expected f32 or f64 and a floating dtype of images, got {} and {}", name_of(from),
        name_of(dtype));
  check(weight.rank() == 4,
        "[fold_batch_norm] expected weight (out, kernel y, kernel x, channels / groups), got {}",
        weight.shape().to_string());
  const std::int64_t filters = weight.size(0);
  for (const Tensor* const each : {&gamma, &beta, &mean, &variance})
    check(each->shape() == Shape{filters}, "[fold_batch_norm] expected norm parameters of shape [{}], got {}",
          filters, each->shape().to_string());
  const auto dense = [](const Tensor& tensor) { return tensor.detach().contiguous(); };
  const Tensor dense_weight = dense(weight), dense_gamma = dense(gamma), dense_beta = dense(beta),
               dense_mean = dense(mean), dense_variance = dense(variance);
  FoldedConv folded{.weight = Tensor::empty(weight.shape(), dtype, device),
                    .bias = Tensor::empty({filters}, dtype == DType::f64 ? DType::f64 : DType::f32, device)};
  if (filters == 0) return folded;
  const FoldBatchNormPlan plan{.from = from,
                               .to = dtype,
                               .filters = filters,
                               .filter_size = weight.numel() / filters,
                               .weight = dense_weight.bytes(),
                               .norm_weight = dense_gamma.bytes(),
                               .norm_bias = dense_beta.bytes(),
                               .mean = dense_mean.bytes(),
                               .variance = dense_variance.bytes(),
                               .epsilon = epsilon,
                               .new_weight = folded.weight.bytes(),
                               .new_bias = folded.bias.bytes()};
  on_backend(device, "fold_batch_norm",
             [&]<Backend B>() { fold_batch_norm_kernel<B>(plan, current_stream(device)); });
  return folded;
}

}  // namespace tandem::detail
