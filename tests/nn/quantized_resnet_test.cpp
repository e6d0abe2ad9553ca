// Residual networks in 8-bit integers compared with the same in f32, and the choice of the ranges.
#include "tandem/nn/quantized_resnet.h"

#include "tandem/core/matrix_isa.h"
#include "tandem/device/graph_runner.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/conv/quantized_conv.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/random.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

using detail::ActivationHistogram;
using detail::CalibrationMethod;

constexpr CalibrationMethod methods[] = {CalibrationMethod::max, CalibrationMethod::percentile,
                                         CalibrationMethod::entropy};

template <class F>
void expect_error(const F& f, const std::string& part) {
  const std::string text = error_text(f);
  EXPECT_NE(text.find(part), text.npos) << text;
}

TEST(ActivationHistogram, Limits_AreThoseOfTheValues) {
  std::vector<float> values;
  for (int i = 1; i <= 100'000; ++i) values.push_back(static_cast<float>(i) * 1e-4f);  // 0 to 10, evenly
  values.insert(values.end(), 50'000, 0.0f);                                           // are not counted
  ActivationHistogram histogram;
  histogram.add(values);
  EXPECT_NEAR(histogram.limit(CalibrationMethod::max, 256), 10, 1e-6);
  EXPECT_NEAR(histogram.limit(CalibrationMethod::percentile, 256), 9.999, 0.005);
  EXPECT_NEAR(histogram.limit(CalibrationMethod::entropy, 256), 10, 0.1);  // no outliers to clamp
}

TEST(ActivationHistogram, Outliers_AreClampedByPercentileAndEntropy) {
  std::vector<float> values = normal({1'000'000}, 0, 1, {.seed = 1}).to_vector<float>();
  values.insert(values.end(), 20, -50.0f);
  ActivationHistogram histogram;
  histogram.add(values);
  EXPECT_NEAR(histogram.limit(CalibrationMethod::max, 256), 50, 1e-6);
  EXPECT_NEAR(histogram.limit(CalibrationMethod::percentile, 256), 3.89, 0.2);  // of a normal distribution
  EXPECT_LT(histogram.limit(CalibrationMethod::entropy, 256), 10);
  EXPECT_GT(histogram.limit(CalibrationMethod::entropy, 256), 2.5);
}

TEST(ActivationHistogram, OrderAndParts_DoNotMatter) {
  const std::vector<float> values = normal({10'000}, 0, 3, {.seed = 1}).to_vector<float>();
  ActivationHistogram whole, parts;
  whole.add(values);
  for (std::size_t end = values.size(); end > 0; end -= 1000)
    parts.add(std::span(values).subspan(end - 1000, 1000));
  for (const CalibrationMethod method : methods)
    EXPECT_EQ(whole.limit(method, 128), parts.limit(method, 128)) << name_of(method);
}

TEST(ActivationHistogram, NothingOrZeros_GiveNoLimit) {
  ActivationHistogram histogram;
  histogram.add({});
  histogram.add(std::vector<float>(100, 0.0f));
  for (const CalibrationMethod method : methods) EXPECT_EQ(histogram.limit(method, 256), 0);
}

TEST(ActivationHistogram, InfinityOrNaN_IsAnError) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    ActivationHistogram histogram;
    expect_error([&] { histogram.add(std::vector<float>{1, bad, 2}); }, "expected finite activations");
  }
}

struct Networks {
  std::unique_ptr<ResNet> exact;
  std::unique_ptr<ResNetCalibration> calibration;
  Tensor images;
};

Networks networks_of(int depth) {
  Networks made{.exact = std::make_unique<ResNet>(ResNetOptions{.depth = depth, .classes = 7, .seed = 3}),
                .calibration = nullptr,
                .images = normal({2, 48, 32, 3}, 0, 1, {.seed = 5})};
  made.exact->eval();
  made.calibration = std::make_unique<ResNetCalibration>(*made.exact);
  return made;
}

double relative_difference(const Tensor& actual, const Tensor& expected) {
  return relative_error(values_of(actual), values_of(expected));
}

// What a state dict means, in f64: weights are those that the integers stand for, and every activation is
// rounded to the values that it can have.
class Reference {
 public:
  explicit Reference(const Module& network) {
    for (const NamedTensor& each : network.state_dict()) state_.emplace(each.name, each.tensor);
  }

  Tensor logits(const Tensor& x) const {
    Tensor y = conv(rounded(cast(x, DType::f64), "images"), "conv1", 2, true, {});
    y = max_pool2d(y, {3, 3}, {.stride = 2, .padding = 1});
    for (int stage = 1; stage <= 4; ++stage)
      for (int i = 0; has(fmt::format("layer{}.{}.conv1", stage, i)); ++i)
        y = block(y, fmt::format("layer{}.{}.", stage, i), stage > 1 && i == 0 ? 2 : 1);
    const Tensor means = adaptive_avg_pool2d(y, {1, 1}).reshape({y.size(0), y.size(3)});
    return add(matmul(means, cast(state_.at("fc.weight"), DType::f64).permute({1, 0})),
               cast(state_.at("fc.bias"), DType::f64));
  }

 private:
  bool has(const std::string& conv) const { return state_.contains(conv + ".weight"); }

  Tensor block(const Tensor& x, const std::string& name, std::int64_t stride) const {
    const bool is_bottleneck = has(name + "conv3");
    const Tensor residual =
        has(name + "downsample.0") ? conv(x, name + "downsample.0", stride, false, {}) : x;
    if (!is_bottleneck)
      return conv(conv(x, name + "conv1", stride, true, {}), name + "conv2", 1, true, residual);
    const Tensor y = conv(conv(x, name + "conv1", 1, true, {}), name + "conv2", stride, true, {});
    return conv(y, name + "conv3", 1, true, residual);
  }

  Tensor conv(const Tensor& x, const std::string& name, std::int64_t stride, bool has_relu,
              const Tensor& residual) const {
    const Tensor stored = state_.at(name + ".weight").permute({0, 2, 3, 1}).contiguous();
    const Tensor weight = detail::dequantize_weight(stored, state_.at(name + ".scale"));
    const std::int64_t padding = weight.size(1) / 2;
    Tensor y = conv2d(x, cast(weight, DType::f64), cast(state_.at(name + ".bias"), DType::f64),
                      {.window = {.stride = stride, .padding = padding}});
    if (residual.defined()) y = add(y, residual);
    if (has_relu) y = relu(y);
    return rounded(y, name + ".output");
  }

  // To the values that 8 bits have.
  Tensor rounded(const Tensor& x, const std::string& name) const {
    const std::vector<double> to = values_of(state_.at(name));
    std::vector<double> values = values_of(x);
    for (double& value : values)
      value = to[0] * (std::clamp(std::nearbyint(value / to[0] + to[1]), 0.0, 255.0) - to[1]);
    return Tensor::from(values, x.shape());
  }

  std::map<std::string, Tensor> state_;
};

class QuantizedResNetDepths : public testing::TestWithParam<int> {};

TEST_P(QuantizedResNetDepths, Logits_AreThoseOfRoundedValues) {
  Networks made = networks_of(GetParam());
  const NoGrad no_grad;
  const Tensor expected = made.exact->forward(made.images);
  EXPECT_LE(relative_difference(made.calibration->observe(made.images), made.exact->features(made.images)),
            1e-4);
  for (const CalibrationMethod method : methods) {
    SCOPED_TRACE(name_of(method));
    const auto network = made.calibration->quantize(method);
    const Tensor logits = network->forward(made.images);
    // Sums near the middle between two levels may be rounded to either.
    EXPECT_LE(relative_difference(logits, Reference(*network).logits(made.images)), 0.04);
    EXPECT_LE(relative_difference(logits, expected), 0.3);
    EXPECT_EQ(values_of(network->forward(made.images)), values_of(logits));
  }
}

struct Batch {
  std::int64_t images, height, width;
  DType dtype;

  Tensor pixels() const { return cast(normal({images, height, width, 3}, 0, 1, {.seed = 7}), dtype); }
};
const Batch batches[] = {
    {1, 64, 48, DType::f32}, {5, 64, 48, DType::bf16}, {67, 64, 48, DType::bf16}, {3, 33, 45, DType::f32}};

std::unique_ptr<QuantizedResNet> quantized_network(int depth) {
  Networks made = networks_of(depth);
  const NoGrad no_grad;
  made.calibration->observe(made.images);
  return made.calibration->quantize(CalibrationMethod::percentile);
}

// Sums are exact and roundings are those of the CPU: every activation is the same. What is left are the
// roundings of the last matrix product.
TEST_P(QuantizedResNetDepths, LogitsOnCuda_AreThoseOfTheCpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  if (const MatrixIsa isa = matrix_isa(MatrixType::int8); isa != MatrixIsa::avx512 && isa != MatrixIsa::amx)
    GTEST_SKIP() << "the CPU's other kernels have other roundings";
  const NoGrad no_grad;
  const auto network = quantized_network(GetParam());
  for (const Batch& batch : batches) {
    SCOPED_TRACE(batch.images);
    const Tensor x = batch.pixels();
    network->to(cpu_device);
    const Tensor expected = network->forward(x);
    network->to(cuda_device());
    const Tensor there = x.to(cuda_device()), logits = network->forward(there);
    EXPECT_EQ(logits.device(), cuda_device());
    EXPECT_LE(relative_difference(logits, expected), 1e-5);
    GraphRunner runner(cuda_device());
    Tensor result;
    for (int i = 0; i < 4; ++i) runner.run([&] { result = network->forward(there); });
    EXPECT_TRUE(runner.captured());
    EXPECT_EQ(values_of(result), values_of(logits));
  }
}

INSTANTIATE_TEST_SUITE_P(Depths, QuantizedResNetDepths, testing::Values(18, 50));

// Of all images so far, and of 0, which is the value of padding.
TEST(QuantizedResNet, ImageValues_CoverTheImages) {
  struct Case {
    float min, max, scale, zero;
  };
  for (const Case& one :
       {Case{-2, 3.1f, 0.02f, 100}, Case{1, 5.1f, 0.02f, 0}, Case{-5.1f, -1, 0.02f, 255}, Case{0, 0, 1, 0}}) {
    Networks made = networks_of(18);
    for (const float value : {one.min, one.max})
      made.calibration->observe(
          Tensor::from(std::vector<float>(std::size_t{3} * 32 * 32, value), {1, 32, 32, 3}));
    const detail::Quantization values = made.calibration->quantize(CalibrationMethod::max)->image_values();
    EXPECT_FLOAT_EQ(values.scale, one.scale) << one.min;
    EXPECT_EQ(values.zero, one.zero) << one.min;
  }
}

TEST(QuantizedResNet, StateDict_RestoresIt) {
  Networks made = networks_of(18);
  made.calibration->observe(made.images);
  const auto network = made.calibration->quantize(CalibrationMethod::percentile);
  QuantizedResNet other(ResNet({.classes = 7}));
  std::size_t bytes = 0;
  for (const NamedTensor& each : network->state_dict())
    bytes += static_cast<std::size_t>(each.tensor.numel()) * size_of(each.tensor.dtype());
  EXPECT_LT(bytes, 11'250'000u);  // of 44.7 MB in f32
  other.load_state_dict(network->state_dict());
  other.eval();
  EXPECT_EQ(values_of(other.forward(made.images)), values_of(network->forward(made.images)));
}

TEST(QuantizedResNet, WrongScales_AreErrors) {
  const ResNet like({.classes = 2});
  struct Case {
    const char* name;
    std::vector<float> values;
    const char* text;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Case& one :
       {Case{"images", {0, 0}, "as images, got 0 and 0"},
        Case{"images", {1, 300}, "as images, got 1 and 300"},
        Case{"layer1.0.conv1.output", {0, 0}, "layer1.0.conv1.output, got 0 and 0"},
        Case{"conv1.scale", std::vector<float>(64, -1), "conv1.scale, got -1"},
        Case{"layer2.0.downsample.0.output", {-1, 128}, "got -1 and 128"},
        Case{"conv1.output", {nan, 0}, "conv1.output, got nan and 0"},
        Case{"layer3.1.conv2.output", {1, 256}, "got 1 and 256"},
        Case{"layer3.1.conv2.output", {1, 0.5f}, "got 1 and 0.5"},
        Case{"layer1.0.conv1.scale", std::vector<float>(64, 0), "layer1.0.conv1.scale, got 0"}}) {
    SCOPED_TRACE(one.name);
    QuantizedResNet network(like);
    NamedTensors state = network.state_dict();
    for (NamedTensor& each : state)
      if (each.name == one.name) each.tensor = Tensor::from(one.values, each.tensor.shape());
    network.load_state_dict(state);
    expect_error([&] { network.check_scales(); }, one.text);
    expect_error([&] { network.forward(normal({1, 32, 32, 3}, 0, 1, {.seed = 1})); }, one.text);
  }
}

TEST(QuantizedResNet, OtherImages_AreErrors) {
  QuantizedResNet network(ResNet({.classes = 2}));
  expect_error(
      [&] {
        network.forward(Tensor::empty({1, 32, 32, 1}, DType::f32));
      },
      "expected images (n, height, width, 3), got [1, 32, 32, 1]");
}

}  // namespace
}  // namespace tandem
