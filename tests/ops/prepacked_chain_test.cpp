// Chains of convolutions with constant weights against the same operations one by one. Only CPUs with
// instructions for bf16 compute a chain of bf16 without barriers; everywhere else both are the same code, and
// chain_stages_test.cpp has what there is.
#include "tandem/ops/conv/prepacked_chain.h"

#include "tandem/core/parallel.h"
#include "tandem/ops/conv/pool.h"
#include "tests/ops/chain_links.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

class PrepackedChain : public testing::TestWithParam<DType> {
 protected:
  PrepackedChain() : stem_conv_(convolution(3, 64, 7, 2, 1)) {
    for (const ChainLink& link : chain_links)
      convs_.push_back(convolution(link.channels, link.filters, link.kernel, link.stride,
                                   2 + static_cast<std::uint32_t>(convs_.size())));
    steps_ = steps_of_links(convs_);
  }
  ~PrepackedChain() override { set_thread_count(usable_cpus()); }

  static PrepackedConv2d convolution(std::int64_t channels, std::int64_t filters, std::int64_t kernel,
                                     std::int64_t stride, std::uint32_t seed) {
    const double limit = 1.5 / std::sqrt(static_cast<double>(kernel * kernel * channels));
    return prepack_conv2d(
        random_tensor({filters, kernel, kernel, channels}, DType::f32, cpu_device, seed, -limit, limit),
        random_tensor({filters}, DType::f32, cpu_device, 100 + seed),
        {.window = {.stride = stride, .padding = kernel / 2}}, GetParam());
  }

  std::vector<double> one_by_one(std::span<const PrepackedStep> steps, const Tensor& x) const {
    std::vector<Tensor> values{max_pool2d(prepacked_conv2d(stem_conv_, x, {}, FusedActivation::relu),
                                          stem_.pool_kernel, stem_.pool_window)};
    for (const PrepackedStep& step : steps)
      values.push_back(prepacked_conv2d(*step.conv, values[step.input],
                                        step.residual ? values[*step.residual] : Tensor(), step.activation));
    return values_of(values.back());
  }

  PrepackedConv2d stem_conv_;
  PrepackedStem stem_{&stem_conv_, {3, 3}, {.stride = 2, .padding = 1}};
  std::vector<PrepackedConv2d> convs_;
  std::vector<PrepackedStep> steps_;
};

TEST_P(PrepackedChain, AnyThreads_GivesTheBitsOfOneByOne) {
  for (const std::int64_t images : {0, 1, 3, 20})
    for (const std::size_t count : {steps_.size(), std::size_t{1}, std::size_t{0}}) {
      const std::span<const PrepackedStep> steps = std::span(steps_).first(count);
      // In turn, so that what one leaves in memory is wrong for the other.
      Tensor x[2];
      std::vector<double> expected[2];
      for (const std::uint32_t i : {0, 1}) {
        set_thread_count(1);
        x[i] = random_tensor({images, 37, 46, 3}, GetParam(), cpu_device, 7 + i, -2, 3);
        expected[i] = one_by_one(steps, x[i]);
      }
      for (const int threads : {1, 2, 3, 16})
        for (const std::size_t i : {0, 1, 0}) {
          set_thread_count(threads);
          const Tensor y = prepacked_conv_chain(stem_, steps, x[i]);
          EXPECT_EQ(y.dtype(), GetParam());
          EXPECT_EQ(values_of(y), expected[i]) << images << " images, " << threads << " threads";
        }
    }
}

TEST_P(PrepackedChain, OtherImages_AreErrors) {
  const auto text = [&](const Shape& shape) {
    return error_text(
        [&] { prepacked_conv_chain(stem_, steps_, random_tensor(shape, GetParam(), cpu_device, 1)); });
  };
  EXPECT_NE(text({1, 37, 46, 4}).find("[conv2d] expected a weight of 4 channels"), std::string::npos);
  EXPECT_NE(text({37, 46, 3}).find("[conv2d] expected x (n, height, width, channels)"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Types, PrepackedChain, testing::Values(DType::bf16, DType::f32),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace tandem::detail
