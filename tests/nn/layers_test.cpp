#include "tandem/core/parallel.h"
#include "tandem/nn/activation.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/init.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/dropout_mask.h"
#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

struct Moments {
  double mean = 0, variance = 0, greatest = 0;
};

Moments moments_of(const Tensor& tensor) {
  const std::vector<double> values = values_of(tensor);
  Moments moments;
  for (double value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.greatest = std::max(moments.greatest, std::abs(value));
  }
  for (double value : values)
    moments.variance += (value - moments.mean) * (value - moments.mean) / static_cast<double>(values.size());
  return moments;
}

class Init : public testing::TestWithParam<Device> {};

TEST_P(Init, HasTheVarianceAndTheBoundsOfItsName) {
  const Shape linear{200, 784}, kernel{64, 32, 3, 3};
  const auto expect = [&](Tensor (*f)(const Shape&, const RandomOptions&), const Shape& shape,
                          double variance, bool is_uniform) {
    const Moments moments = moments_of(f(shape, {.seed = 3, .device = GetParam()}));
    const double stddev = std::sqrt(variance), n = std::sqrt(static_cast<double>(shape.numel()));
    EXPECT_NEAR(moments.mean, 0, 5 * stddev / n);
    EXPECT_NEAR(moments.variance, variance, 8 * variance / n);
    const double bound = is_uniform ? std::sqrt(3.0) * stddev * (1 + 1e-6) : 7 * stddev;
    EXPECT_LE(moments.greatest, bound);
    EXPECT_GT(moments.greatest, (is_uniform ? 1.7 : 3.0) * stddev);
  };
  expect(xavier_uniform, linear, 2.0 / (784 + 200), true);
  expect(xavier_normal, linear, 2.0 / (784 + 200), false);
  expect(he_uniform, linear, 2.0 / 784, true);
  expect(he_normal, linear, 2.0 / 784, false);
  expect(xavier_uniform, kernel, 2.0 / ((64 + 32) * 9), true);
  expect(he_normal, kernel, 2.0 / (32 * 9), false);
}

TEST_P(Init, GivesTheSameBitsOnEveryDeviceAndOthersForEveryStreamAndSeed) {
  for (auto f : {xavier_uniform, xavier_normal, he_uniform, he_normal}) {
    const auto values = [&](std::uint64_t seed, std::uint64_t stream, Device device) {
      const Tensor weights = f({5, 7}, {.seed = seed, .stream = stream, .device = device});
      EXPECT_EQ(weights.device(), device);
      return values_of(weights);
    };
    EXPECT_EQ(values(1, 0, GetParam()), values(1, 0, cpu_device));
    EXPECT_NE(values(1, 0, GetParam()), values(1, 1, GetParam()));
    EXPECT_NE(values(1, 0, GetParam()), values(2, 0, GetParam()));
  }
}

class DropoutOnDevice : public testing::TestWithParam<Device> {};

TEST_P(DropoutOnDevice, KeepsTheShareAndTheMean) {
  Dropout dropout(0.3, 5);
  dropout.to(GetParam());
  const Tensor x = ones({100, 1001}, DType::f32, GetParam());
  const std::vector<double> values = values_of(dropout(x));
  double dropped = 0;
  for (double value : values) {
    ASSERT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-6);
    dropped += value == 0;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(dropped / count, 0.3, 5 * std::sqrt(0.21 / count));
}

TEST_P(DropoutOnDevice, DrawsByStepLayerAndSeedTheSameOnEveryDevice) {
  const auto masks = [](std::uint64_t seed, std::uint32_t layer, Device device) {
    Dropout dropout(0.5, seed, layer);
    dropout.to(device);
    const Tensor x = ones({7, 9}, DType::f64, device);
    const auto first = values_of(dropout(x));
    return std::pair(first, values_of(dropout(x)));
  };
  const auto [first, second] = masks(1, 0, GetParam());
  EXPECT_NE(first, second);
  EXPECT_EQ(masks(1, 0, cpu_device), std::pair(first, second));
  EXPECT_NE(masks(2, 0, GetParam()).first, first);
  EXPECT_NE(masks(1, 1, GetParam()).first, first);
}

TEST_P(DropoutOnDevice, IsTheIdentityInEvaluationAndTakesUpWhereItsStateStands) {
  Dropout dropout(0.5), resumed(0.5);
  dropout.to(GetParam());
  resumed.to(GetParam());
  const Tensor x = random_tensor({40}, DType::f32, GetParam(), 1);
  (void)dropout(x);
  resumed.load_state_dict(dropout.state_dict());
  dropout.eval();
  EXPECT_EQ(values_of(dropout(x)), values_of(x));
  dropout.train();
  EXPECT_EQ(values_of(dropout(x)), values_of(resumed(x)));
  EXPECT_EQ(dropout.buffers()[0].tensor.item<std::int64_t>(), 2);
}

TEST_P(DropoutOnDevice, PassesTheGradientWhereItPassedTheValue) {
  Dropout dropout(0.5);
  dropout.to(GetParam());
  Tensor x = ones({33}, DType::f64, GetParam()).set_requires_grad();
  const Tensor y = dropout(x);
  backward(sum(y));
  EXPECT_EQ(values_of(x.grad()), values_of(y));
}

INSTANTIATE_TEST_SUITE_P(Devices, Init, testing::ValuesIn(test_devices()), device_name);
INSTANTIATE_TEST_SUITE_P(Devices, DropoutOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Dropout, IsTheSameForAnyNumberOfThreads) {
  const auto mask = [](int threads) {
    const ThreadLimit limit(threads);
    return values_of(dropout_mask({30001}, zeros({}, DType::i64), {.probability = 0.4, .seed = 9}));
  };
  EXPECT_EQ(mask(1), mask(2));
}

TEST(Linear, IsPyTorchsInLayoutAndNames) {
  Linear layer(3, 2);
  EXPECT_EQ(layer.weight().shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of(layer.bias()), (std::vector<double>{0, 0}));
  layer.load_state_dict({{"weight", tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f32)},
                         {"bias", tensor_of({10, 20}, {2}, DType::f32)}});
  EXPECT_EQ(values_of(layer(tensor_of({1, 0, -1}, {1, 3}, DType::f32))), (std::vector<double>{8, 18}));
  Linear plain(3, 2, {.bias = false, .random = {.dtype = DType::f64}});
  EXPECT_FALSE(plain.bias().defined());
  EXPECT_EQ(plain.weight().dtype(), DType::f64);
  EXPECT_EQ(error_text([&] { layer(ones({4})); }),
            "[linear] expected x (n, in) and weight (out, in), got [4] and [2, 3]");
  EXPECT_EQ(error_text([] { Linear(0, 2); }), "[linear] expected sizes of 1 or more, got 0 and 2");
}

TEST(Activation, LayersAreTheFunctions) {
  const Tensor x = random_tensor({5}, DType::f32, cpu_device, 1);
  EXPECT_EQ(values_of(ActivationLayer(Activation::sigmoid)(x)), values_of(sigmoid(x)));
  EXPECT_EQ(values_of(ActivationLayer(Activation::tanh)(x)), values_of(tanh(x)));
  EXPECT_EQ(values_of(ActivationLayer(Activation::relu)(x)), values_of(relu(x)));
}

TEST(Mlp, IsLinearLayersWithActivationsBetween) {
  const auto network = make_mlp(
      {.layers = {6, 5, 4, 3}, .activation = Activation::tanh, .dropout = 0.1, .sigmoid_output = true});
  ASSERT_EQ(network->size(), 8U);
  for (std::size_t i : {0U, 3U, 6U}) EXPECT_NE(dynamic_cast<Linear*>(&(*network)[i]), nullptr) << i;
  for (std::size_t i : {2U, 5U}) EXPECT_NE(dynamic_cast<Dropout*>(&(*network)[i]), nullptr) << i;
  EXPECT_EQ(dynamic_cast<ActivationLayer&>((*network)[1]).activation(), Activation::tanh);
  EXPECT_EQ(dynamic_cast<ActivationLayer&>((*network)[7]).activation(), Activation::sigmoid);
  EXPECT_EQ((*network)(random_tensor({2, 6}, DType::f32, cpu_device, 1)).shape(), (Shape{2, 3}));
  EXPECT_EQ(make_mlp({.layers = {784, 200, 10}})->size(), 3U);
  EXPECT_EQ(make_mlp({.layers = {784, 10}})->size(), 1U);
}

TEST(Mlp, StartsFromTheSeedWithEveryLayerDifferent) {
  const auto weights = [](std::uint64_t seed) {
    std::vector<std::vector<double>> all;
    for (const auto& [name, tensor] : make_mlp({.layers = {8, 8, 8}, .seed = seed})->parameters())
      all.push_back(values_of(tensor));
    return all;
  };
  const auto first = weights(1);
  EXPECT_EQ(first, weights(1));
  EXPECT_NE(first, weights(2));
  EXPECT_NE(first[0], first[2]);
  EXPECT_EQ(first[1], std::vector<double>(8));
  EXPECT_LE(moments_of(make_mlp({.layers = {8, 8}})->parameters()[0].tensor).greatest,
            std::sqrt(6.0 / 16) + 1e-6);
}

TEST(Mlp, RefusesLayersThatMakeNoNetwork) {
  EXPECT_EQ(error_text([] { make_mlp({}); }),
            "[mlp] expected at least two layer sizes, such as 784,200,10, got none");
  EXPECT_EQ(error_text([] { make_mlp({.layers = {784}}); }),
            "[mlp] expected at least two layer sizes, such as 784,200,10, got 784");
  EXPECT_EQ(error_text([] {
              make_mlp({.layers = {784, 0, 10}});
            }),
            "[mlp] expected layer sizes of 1 or more, got 784,0,10");
  EXPECT_EQ(error_text([] {
              make_mlp({.layers = {INT64_MAX, INT64_MAX}});
            }),
            "[mlp] expected at most 2^40 weights, got layers 9223372036854775807,9223372036854775807");
  EXPECT_EQ(error_text([] {
              make_mlp({.layers = {4, 4, 2}, .dropout = 1});
            }),
            "[dropout] expected a probability of 0 or more and less than 1, got 1");
}

TEST(InitErrors, NameTheShape) {
  EXPECT_EQ(error_text([] { he_normal({7}); }),
            "[he_normal] expected weights of shape (out, in, …), got [7]");
}

}  // namespace
}  // namespace tandem
