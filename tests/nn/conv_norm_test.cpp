// A convolution with its norm: folded where nothing is learnt, and never stale.
#include "tandem/nn/conv_norm.h"

#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/tensor/copy.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

// The brick as a module, with numbers that are not those of the beginning.
class Brick : public Module {
 public:
  Brick(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options) : layer_(in, out, options) {
    add_child("conv", layer_.conv());
    add_child("bn", layer_.norm());
    load_state_dict(golden::hashed_state(*this, "brick."));
  }
  Tensor forward(const Tensor& x) override { return layer_.forward(x, true); }
  Tensor forward(const Tensor& x, bool relu, const Tensor& residual) {
    return layer_.forward(x, relu, residual);
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

std::vector<double> folded(Brick& brick, const Tensor& x) {
  const NoGrad no_grad;
  return values_of(brick(x));
}

class ConvNormOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ConvNormOnDevice, FoldedEqualsUnfolded) {
  for (const Conv2dLayerOptions& options :
       {square(3, 1), square(3, 2), square(1, 1), square(1, 2), square(7, 2), square(3, 1, 4)})
    for (const std::int64_t channels : {4, 36})
      for (const bool relu : {false, true})
        for (const bool has_residual : {false, true}) {
          SCOPED_TRACE(fmt::format("{}x{} stride {} groups {} channels {} relu {} residual {}",
                                   options.kernel.y, options.kernel.x, options.window.stride.y,
                                   options.groups, channels, relu, has_residual));
          Brick brick(channels, 20, options);
          brick.to(GetParam());
          brick.eval();
          const Tensor x = random_tensor({2, 13, 9, channels}, DType::f32, GetParam(), 1);
          const Shape out = brick(x).shape();
          const Tensor residual = has_residual ? random_tensor(out, DType::f32, GetParam(), 2) : Tensor();
          const Tensor plain = brick.forward(x, relu, residual);
          EXPECT_TRUE(plain.requires_grad());  // so it was not folded
          const NoGrad no_grad;
          const Tensor fast = brick.forward(x, relu, residual);
          EXPECT_FALSE(fast.requires_grad());
          EXPECT_LE(relative_error(values_of(fast), values_of(plain)), 1e-5);
        }
}

TEST_P(ConvNormOnDevice, FoldsAnewWhenValuesMayHaveChanged) {
  Brick brick(5, 6, square(3, 1));
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, cpu_device, 1);
  const auto plain = [&] { return values_of(brick(x.to(brick.parameters()[0].tensor.device()))); };
  brick.eval();
  const auto first = folded(brick, x);
  brick.load_state_dict(golden::hashed_state(brick, "other."));
  EXPECT_GT(relative_error(folded(brick, x), first), 1e-2);
  EXPECT_LE(relative_error(folded(brick, x), plain()), 1e-5);

  brick.train();
  const auto before = folded(brick, x);  // by the batch's statistics, moving the running ones
  brick.eval();
  const auto moved = folded(brick, x);
  EXPECT_LE(relative_error(moved, plain()), 1e-5);
  EXPECT_GT(relative_error(moved, before), 1e-3);

  brick.train();  // an update in place, as an optimiser makes it
  for (const auto& [name, parameter] : brick.parameters())
    copy_into(parameter.detach(), multiply(parameter.detach(), 1.5));
  brick.eval();
  EXPECT_LE(relative_error(folded(brick, x), plain()), 1e-5);
  EXPECT_GT(relative_error(folded(brick, x), moved), 1e-2);

  for (const auto& [name, parameter] : brick.parameters())  // told of by hand
    copy_into(parameter.detach(), multiply(parameter.detach(), 1.5));
  EXPECT_GT(relative_error(folded(brick, x), plain()), 1e-2);
  brick.drop_derived();
  EXPECT_LE(relative_error(folded(brick, x), plain()), 1e-5);

  const auto here = folded(brick, x);
  brick.to(GetParam());
  EXPECT_LE(relative_error(folded(brick, x.to(GetParam())), here), 1e-5);
}

TEST_P(ConvNormOnDevice, FoldsForTheDtypeOfItsImages) {
  Brick brick(5, 6, square(3, 1));
  brick.to(GetParam());
  brick.eval();
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, GetParam(), 1);
  const auto single = folded(brick, x);
  {
    const NoGrad no_grad;
    const Tensor half = brick(cast(x, DType::bf16));
    EXPECT_EQ(half.dtype(), DType::bf16);
    EXPECT_LE(relative_error(values_of(half), single), 2e-2);
  }
  EXPECT_EQ(folded(brick, x), single);
}

TEST_P(ConvNormOnDevice, IsFoldedInTrainingOnlyWhereFrozenAndFixed) {
  Brick brick(5, 6, square(3, 1));
  brick.to(GetParam());
  const Tensor x = random_tensor({2, 6, 7, 5}, DType::f32, GetParam(), 1);
  brick.eval();
  const auto evaluated = folded(brick, x);
  brick.train();
  const auto statistics = [&] { return values_of(brick.buffers()[0].tensor); };
  const auto begun = statistics();
  brick.freeze();
  const Tensor trained = brick(x);
  EXPECT_FALSE(trained.requires_grad());
  EXPECT_GT(relative_error(values_of(trained), evaluated), 1e-2);  // by the batch's statistics
  EXPECT_NE(statistics(), begun);
  const auto moved = statistics();
  brick.norm().fix_statistics();
  const auto fixed = values_of(brick(x));
  EXPECT_EQ(statistics(), moved);
  brick.eval();
  EXPECT_LE(relative_error(fixed, folded(brick, x)), 1e-6);
  // A gradient that goes through a frozen brick still arrives.
  Tensor input = x.clone();
  input.set_requires_grad();
  backward(sum(brick(input)));
  EXPECT_TRUE(input.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvNormOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(ConvNorm, HasNoBiasButTheNorms) {
  ConvNorm layer(2, 3, {.bias = true});
  EXPECT_FALSE(layer.conv().bias().defined());
  EXPECT_EQ(layer.conv().state_dict().size(), 1U);
  EXPECT_EQ(layer.norm().state_dict().size(), 5U);
}

TEST(ConvNorm, RefusesAResidualOfAnotherShapeFoldedOrNot) {
  Brick brick(2, 3, square(3, 1));
  brick.eval();
  const Tensor x = random_tensor({1, 4, 4, 2}, DType::f32, cpu_device, 1);
  const Tensor residual = random_tensor({1, 4, 4, 2}, DType::f32, cpu_device, 2);
  EXPECT_EQ(error_text([&] { brick.forward(x, true, residual); }),
            "[batch_norm] expected a residual of shape [1, 4, 4, 3], got [1, 4, 4, 2]");
  const NoGrad no_grad;
  EXPECT_EQ(error_text([&] { brick.forward(x, true, residual); }),
            "[conv2d] expected a residual of shape [1, 4, 4, 3], got [1, 4, 4, 2]");
}

}  // namespace
}  // namespace tandem
