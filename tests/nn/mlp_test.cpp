#include "tandem/nn/mlp.h"

#include "tandem/nn/activation.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/linear.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

TEST(Activation, Layers_ApplyTheFunctions) {
  const Tensor x = random_tensor({5}, DType::f32, cpu_device, 1);
  EXPECT_EQ(values_of(ActivationLayer(Activation::sigmoid)(x)), values_of(sigmoid(x)));
  EXPECT_EQ(values_of(ActivationLayer(Activation::tanh)(x)), values_of(tanh(x)));
  EXPECT_EQ(values_of(ActivationLayer(Activation::relu)(x)), values_of(relu(x)));
}

TEST(Mlp, Layers_AlternateLinearAndActivation) {
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

TEST(Mlp, InitialWeights_DependOnSeedAndLayer) {
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
  for (double value : first[0]) EXPECT_LE(std::abs(value), std::sqrt(6.0 / 16) + 1e-6);
}

TEST(Mlp, InvalidLayers_Throw) {
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

}  // namespace
}  // namespace tandem
