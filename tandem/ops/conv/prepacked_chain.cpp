#include "tandem/ops/conv/prepacked_chain.h"

#include <optional>
#include <vector>

#include "tandem/ops/conv/conv_shards.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/conv/pool_kernel.h"

namespace tandem::detail {
namespace {

Tensor one_by_one(const PrepackedStem& stem, std::span<const PrepackedStep> steps, const Tensor& x) {
  const Tensor first = max_pool2d(prepacked_conv2d(*stem.conv, x, {}, FusedActivation::relu),
                                  stem.pool_kernel, stem.pool_window);
  return run_steps(steps, first, [&](std::size_t i, const Tensor& input, const Tensor& residual) {
    return prepacked_conv2d(*steps[i].conv, input, residual, steps[i].activation);
  });
}

}  // namespace

bool has_prepacked_chain(const Tensor& x) {
  return !x.device().is_cuda() && x.dtype() == DType::bf16 &&
         matrix_isa(MatrixType::bf16) != MatrixIsa::plain;
}

Tensor prepacked_conv_chain(const PrepackedStem& stem, std::span<const PrepackedStep> steps,
                            const Tensor& x) {
  if (!has_prepacked_chain(x) || x.numel() == 0 || steps.empty()) return one_by_one(stem, steps, x);
  constexpr DType dtype = DType::bf16;
  const PrepackedConv2d& conv = *stem.conv;
  const Conv2dPlan plan = conv2d_plan(x, conv.weight_shape, conv.options);
  const PoolPlan pool = max_pool_plan(output_shape(plan), dtype, stem.pool_kernel, stem.pool_window);
  ChainStages stages(steps, {pool.images, pool.out.y, pool.out.x, pool.channels},
                     static_cast<std::int64_t>(size_of(dtype)),
                     [](const PrepackedConv2d& each, const Shape& images) {
                       expect(each.options.groups == 1 && each.dtype == DType::bf16);
                       return conv2d_plan(images, DType::bf16, each.weight_shape, each.options);
                     });
  const Tensor images = x.detach().contiguous();
  Tensor result = Tensor::empty(stages.result(), dtype);
  const Buffer convolved = make_scratch<BFloat16>(sizes_of(plan).y),
               pooled = make_scratch<BFloat16>(pool.images * pool.out.y * pool.out.x * pool.channels);
  const auto pool_lines = [&](IndexRange lines, std::byte*) {
    max_pool_lines(pool, as<BFloat16>(pooled), as<BFloat16>(convolved), lines);
  };
  std::vector<ChainStage> chain{
      {.work = prepacked_block_conv(plan, convolved.data(), images.bytes(), conv,
                                    {.bias = conv.bias.bytes(), .activation = FusedActivation::relu})},
      {.work = ImageLines{pool.images, pool.out.y, 0, pool_lines}, .input = 0}};
  stages.append_to(
      chain, pooled.data(), 1, result.bytes(), [](const PrepackedStep& step, const auto& operands) {
        return prepacked_block_conv(
            operands.plan, operands.y, operands.x, *step.conv,
            {.bias = step.conv->bias.bytes(), .residual = operands.residual, .activation = step.activation});
      });
  block_conv_chain(chain);
  return result;
}

}  // namespace tandem::detail
