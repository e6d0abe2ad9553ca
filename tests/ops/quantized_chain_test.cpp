// Chains of 8-bit convolutions against the same convolutions one by one.
#include "tandem/ops/conv/quantized_chain.h"

#include "tandem/core/parallel.h"
#include "tandem/ops/conv/quantized_images.h"
#include "tests/ops/chain_links.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

class QuantizedChain : public testing::Test {
 protected:
  QuantizedChain() {
    std::vector<Quantization> values{{.scale = 0.02f, .zero = 0}};
    for (const ChainLink& link : chain_links) {
      const auto size = static_cast<double>(link.kernel * link.kernel * link.channels);
      const auto seed = static_cast<std::uint32_t>(values.size());
      const Tensor weight = random_tensor({link.filters, link.kernel, link.kernel, link.channels}, DType::f32,
                                          cpu_device, seed, -1.5 / std::sqrt(size), 1.5 / std::sqrt(size));
      values.push_back(link.has_relu ? Quantization{0.02f, 0} : Quantization{0.03f, 128});
      convs_.push_back(prepack_quantized_conv2d(
          quantize_weight(weight), random_tensor({link.filters}, DType::f32, cpu_device, 100 + seed),
          {.window = {.stride = link.stride, .padding = link.kernel / 2}}, values[link.input],
          values.back()));
    }
    steps_ = steps_of_links(convs_);
  }
  ~QuantizedChain() override { set_thread_count(usable_cpus()); }

  std::vector<std::uint8_t> one_by_one(const Tensor& x) const {
    std::vector<Tensor> values{x};
    std::vector<Quantization> meanings{convs_.front().input};
    for (const QuantizedStep& step : steps_) {
      QuantizedResidual residual;
      if (step.residual) residual = {values[*step.residual], meanings[*step.residual]};
      values.push_back(quantized_conv2d(*step.conv, values[step.input], step.activation, residual));
      meanings.push_back(step.conv->result);
    }
    return values.back().to_vector<std::uint8_t>();
  }

  std::vector<QuantizedConv2d> convs_;
  std::vector<QuantizedStep> steps_;
};

TEST_F(QuantizedChain, AnyThreads_GivesTheBytesOfOneByOne) {
  for (const std::int64_t images : {0, 1, 2, 9, 33}) {
    // In turn, so that what one leaves in memory is wrong for the other.
    Tensor x[2];
    std::vector<std::uint8_t> expected[2];
    set_thread_count(1);
    for (const std::uint32_t i : {0, 1}) {
      x[i] = random_tensor({images, 15, 11, 64}, DType::u8, cpu_device, 7 + i, 0, 256);
      expected[i] = one_by_one(x[i]);
      EXPECT_EQ(std::ssize(expected[i]), images * 8 * 6 * 96);
    }
    for (const int threads : {1, 2, 3, 16})
      for (const std::size_t i : {0, 1, 0}) {
        set_thread_count(threads);
        const Tensor y = quantized_conv_chain(steps_, x[i]);
        EXPECT_EQ(y.shape(), Shape({images, 8, 6, 96}));
        EXPECT_EQ(y.to_vector<std::uint8_t>(), expected[i]) << images << " images, " << threads << " threads";
      }
  }
}

TEST_F(QuantizedChain, Features_AreThoseOfTheOpsOneByOne) {
  const QuantizedWeight weight =
      with_whole_groups(quantize_weight(random_tensor({64, 7, 7, 3}, DType::f32, cpu_device, 2, -0.1, 0.1)));
  const QuantizedConv2d first = prepack_quantized_conv2d(
      weight, random_tensor({64}, DType::f32, cpu_device, 3), {.window = {.stride = 2, .padding = 3}},
      {.scale = 0.02f, .zero = 77}, {.scale = 0.02f, .zero = 0});
  const QuantizedStem stem{&first, {3, 3}, {.stride = 2, .padding = 1}};
  const auto expected = [&](std::span<const QuantizedStep> steps, const Tensor& x) {
    set_thread_count(1);
    const Tensor stored = quantize_images(x, first.input, weight.stored.size(3)),
                 pooled = quantized_max_pool2d(quantized_conv2d(first, stored, FusedActivation::relu),
                                               stem.pool_kernel, stem.pool_window);
    return quantized_image_mean(quantized_conv_chain(steps, pooled),
                                steps.empty() ? first.result : steps.back().conv->result);
  };
  for (const std::int64_t images : {0, 1, 3, 20})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const std::size_t count : {steps_.size(), std::size_t{1}, std::size_t{0}}) {
        const std::span<const QuantizedStep> steps = std::span(steps_).first(count);
        // In turn, so that what one leaves in memory is wrong for the other.
        Tensor x[2], means[2];
        for (const std::uint32_t i : {0, 1}) {
          x[i] = random_tensor({images, 37, 46, 3}, dtype, cpu_device, 7 + i, -2, 3);
          means[i] = expected(steps, x[i]);
        }
        for (const int threads : {1, 2, 3, 16})
          for (const std::size_t i : {0, 1, 0}) {
            set_thread_count(threads);
            const Tensor y = quantized_features(stem, steps, x[i]);
            EXPECT_EQ(y.shape(), means[i].shape());
            EXPECT_EQ(values_of(y), values_of(means[i])) << images << " images, " << threads << " threads";
          }
      }
}

TEST_F(QuantizedChain, NoSteps_GivesTheImages) {
  const Tensor x = random_tensor({1, 2, 2, 64}, DType::u8, cpu_device, 7, 0, 256);
  EXPECT_EQ(values_of(quantized_conv_chain({}, x)), values_of(x));
}

TEST_F(QuantizedChain, OtherImages_AreErrors) {
  EXPECT_NE(error_text([&] {
              quantized_conv_chain(steps_, Tensor::empty({1, 9, 9, 64}, DType::f32));
            }).find("expected u8 images (n, height, width, channels), got [1, 9, 9, 64] of f32"),
            std::string::npos);
  EXPECT_NE(error_text([&] {
              quantized_conv_chain(steps_, Tensor::empty({1, 9, 9, 65}, DType::u8));
            }).find("channels"),
            std::string::npos);
  EXPECT_NE(
      error_text([&] {
        quantized_features({&convs_.front(), {3, 3}, {}}, steps_, Tensor::empty({1, 9, 9, 64}, DType::u8));
      }).find("expected images (n, height, width, channels) of f32 or bf16, got [1, 9, 9, 64] of u8"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem::detail
