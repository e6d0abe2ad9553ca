// Convolution with batch norm: folded for inference, and never with stale weights.
#include "tandem/nn/conv_norm.h"

#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/tensor/copy.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

// ConvNorm as a module, with values other than the initial ones.
class ConvNormModule : public Module {
 public:
  ConvNormModule(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options)
      : layer_(in, out, options) {
    add_child("conv", layer_.conv());
    add_child("bn", layer_.norm());
    load_state_dict(golden::hashed_state(*this, "brick."));
  }
  Tensor forward(const Tensor& x) override { return layer_.forward(x, FusedActivation::relu); }
  Tensor forward(const Tensor& x, FusedActivation activation, const Tensor& residual) {
    return layer_.forward(x, activation, residual);
  }
  BatchNorm& norm() { return layer_.norm(); }

 private:
  ConvNorm layer_;
};

Conv2dLayerOptions square(std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  return {.kernel = {kernel, kernel},
          .window = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}},
          .groups = groups};
}

std::vector<double> folded(ConvNormModule& block, const Tensor& x) {
  const NoGrad no_grad;
  return values_of(block(x));
}

class ConvNormOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ConvNormOnDevice, Folded_EqualsUnfolded) {
  for (const Conv2dLayerOptions& options :
       {square(3, 1), square(3, 2), square(1, 1), square(1, 2), square(7, 2), square(3, 1, 4),
        square(3, 2, 20), square(5, 1, 20)})
    for (const std::int64_t channels : {4, 20, 36})
      for (const FusedActivation activation :
           {FusedActivation::none, FusedActivation::relu, FusedActivation::silu, FusedActivation::hardswish})
        for (const bool has_residual : {false, true}) {
          if (channels % options.groups != 0) continue;
          if (has_residual && activation > FusedActivation::relu) continue;
          SCOPED_TRACE(fmt::format("{}x{} stride {} groups {} channels {} activation {} residual {}",
                                   options.kernel.y, options.kernel.x, options.window.stride.y,
                                   options.groups, channels, static_cast<int>(activation), has_residual));
          ConvNormModule block(channels, 20, options);
          block.to(GetParam());
          block.eval();
          const Tensor x = random_tensor({2, 13, 9, channels}, DType::f32, GetParam(), 1);
          const Shape out = block(x).shape();
          const Tensor residual = has_residual ? random_tensor(out, DType::f32, GetParam(), 2) : Tensor();
          const Tensor unfolded = block.forward(x, activation, residual);
          EXPECT_TRUE(unfolded.requires_grad());  // so it was not folded
          const NoGrad no_grad;
          const Tensor fast = block.forward(x, activation, residual);
          EXPECT_FALSE(fast.requires_grad());
          EXPECT_LE(relative_error(values_of(fast), values_of(unfolded)), 1e-5);
        }
}

TEST_P(ConvNormOnDevice, ChangedValues_AreFoldedAgain) {
  ConvNormModule block(5, 6, square(3, 1));
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, cpu_device, 1);
  const auto unfolded = [&] { return values_of(block(x.to(block.parameters()[0].tensor.device()))); };
  block.eval();
  const auto first = folded(block, x);
  block.load_state_dict(golden::hashed_state(block, "other."));
  EXPECT_GT(relative_error(folded(block, x), first), 1e-2);
  EXPECT_LE(relative_error(folded(block, x), unfolded()), 1e-5);

  block.train();
  const auto before = folded(block, x);  // with the batch's statistics, updating the running ones
  block.eval();
  const auto moved = folded(block, x);
  EXPECT_LE(relative_error(moved, unfolded()), 1e-5);
  EXPECT_GT(relative_error(moved, before), 1e-3);

  block.train();  // an update in place, like that of an optimizer
  for (const auto& [name, parameter] : block.parameters())
    copy_into(parameter.detach(), multiply(parameter.detach(), 1.5));
  block.eval();
  EXPECT_LE(relative_error(folded(block, x), unfolded()), 1e-5);
  EXPECT_GT(relative_error(folded(block, x), moved), 1e-2);

  for (const auto& [name, parameter] : block.parameters())  // reported by invalidate_caches()
    copy_into(parameter.detach(), multiply(parameter.detach(), 1.5));
  EXPECT_GT(relative_error(folded(block, x), unfolded()), 1e-2);
  block.invalidate_caches();
  EXPECT_LE(relative_error(folded(block, x), unfolded()), 1e-5);

  const auto here = folded(block, x);
  block.to(GetParam());
  EXPECT_LE(relative_error(folded(block, x.to(GetParam())), here), 1e-5);
}

TEST_P(ConvNormOnDevice, Dtype_OfTheImagesDecides) {
  ConvNormModule block(5, 6, square(3, 1));
  block.to(GetParam());
  block.eval();
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, GetParam(), 1);
  const auto single = folded(block, x);
  {
    const NoGrad no_grad;
    const Tensor half = block(cast(x, DType::bf16));
    EXPECT_EQ(half.dtype(), DType::bf16);
    EXPECT_LE(relative_error(values_of(half), single), 2e-2);
  }
  EXPECT_EQ(folded(block, x), single);
}

TEST_P(ConvNormOnDevice, Training_FoldsOnlyWithFrozenWeightsAndStatistics) {
  ConvNormModule block(5, 6, square(3, 1));
  block.to(GetParam());
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, GetParam(), 1);
  block.eval();
  const auto evaluated = folded(block, x);
  block.train();
  const auto statistics = [&] { return values_of(block.buffers()[0].tensor); };
  const auto initial = statistics();
  block.freeze();
  const Tensor trained = block(x);
  EXPECT_FALSE(trained.requires_grad());
  EXPECT_GT(relative_error(values_of(trained), evaluated), 1e-2);  // with the batch's statistics
  EXPECT_NE(statistics(), initial);
  const auto moved = statistics();
  block.norm().freeze_statistics();
  const auto fixed = values_of(block(x));
  EXPECT_EQ(statistics(), moved);
  block.eval();
  EXPECT_LE(relative_error(fixed, folded(block, x)), 1e-6);
  // Gradients still flow through a frozen block to its input.
  Tensor input = x.clone();
  input.set_requires_grad();
  backward(sum(block(input)));
  EXPECT_TRUE(input.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvNormOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(ConvNorm, Bias_IsOnlyThatOfTheNorm) {
  ConvNorm layer(2, 3, {.bias = true});
  EXPECT_FALSE(layer.conv().bias().defined());
  EXPECT_EQ(layer.conv().state_dict().size(), 1U);
  EXPECT_EQ(layer.norm().state_dict().size(), 5U);
}

TEST(ConvNorm, ResidualOfAnotherShape_Throws) {
  ConvNormModule block(2, 3, square(3, 1));
  block.eval();
  const Tensor x = random_tensor({1, 4, 4, 2}, DType::f32, cpu_device, 1);
  const Tensor residual = random_tensor({1, 4, 4, 2}, DType::f32, cpu_device, 2);
  EXPECT_EQ(error_text([&] { block.forward(x, FusedActivation::relu, residual); }),
            "[batch_norm] expected a residual of shape [1, 4, 4, 3], got [1, 4, 4, 2]");
  const NoGrad no_grad;
  EXPECT_EQ(error_text([&] { block.forward(x, FusedActivation::relu, residual); }),
            "[conv2d] expected a residual of shape [1, 4, 4, 3], got [1, 4, 4, 2]");
}

}  // namespace
}  // namespace tandem
