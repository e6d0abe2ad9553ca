// The bits of training do not depend on the number of threads, for every kind of network. (engine_test.cpp
// tests the perceptron's own engine.)
#include <gtest/gtest.h>

#include "tandem/core/parallel.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"

namespace tandem {
namespace {

struct Network {
  const char* name;
  Architecture architecture;
  Shape input;  // of a batch
};

std::vector<Network> networks() {
  const Architecture cnn{.model = "cnn", .channels = 3, .classes = 7};
  const Architecture resnet{.model = "resnet18", .channels = 3, .classes = 7};
  return {
      {"mlp", {.layers = {300, 130, 7}}, {19, 300}},
      {"wide_mlp", {.layers = {784, 700, 600, 7}, .activation = Activation::relu, .dropout = 0.3}, {64, 784}},
      {"one_row", {.layers = {784, 700, 7}}, {1, 784}},
      {"cnn", cnn, {9, 32, 32, 3}},
      {"resnet18_at_32", resnet, {6, 32, 32, 3}},
      {"resnet18_at_64", resnet, {3, 64, 64, 3}}};
}

// All values of the model and of the optimizer after three steps.
std::vector<float> train(const Network& network, int threads) {
  set_thread_count(threads);
  const std::unique_ptr<Module> model = make_model(network.architecture, 5);
  SGD optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
  const Tensor x = uniform(network.input, 0, 1, {.seed = 3});
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < network.input[0]; ++i) labels.push_back(static_cast<std::int32_t>(i % 7));
  const Tensor y = Tensor::from(labels, {network.input[0]});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    backward(cross_entropy((*model)(x), y));
    optimizer.step();
  }
  set_thread_count(usable_cpus());
  std::vector<float> all;
  for (const NamedTensors& tensors : {model->state_dict(), optimizer.state()})
    for (const NamedTensor& one : tensors)
      if (one.tensor.dtype() == DType::f32)
        for (const float value : one.tensor.detach().to_vector<float>()) all.push_back(value);
  return all;
}

class ThreadBits : public testing::TestWithParam<Network> {};

TEST_P(ThreadBits, EveryNumberOfThreads_GivesTheSameBits) {
  const std::vector<float> one = train(GetParam(), 1);
  for (const int threads : {2, 3, 5, 16})
    EXPECT_TRUE(train(GetParam(), threads) == one) << threads << " threads";
}

INSTANTIATE_TEST_SUITE_P(Networks, ThreadBits, testing::ValuesIn(networks()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tandem
