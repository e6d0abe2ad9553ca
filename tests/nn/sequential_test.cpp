// Networks of temporaries, and layers that are moved.
#include "tandem/nn/sequential.h"

#include "tandem/nn/activation.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/flatten.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/pool.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/flatten.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST(SequentialOfTemporaries, Forward_ComposesTheLayers) {
  Sequential model(Flatten(), Linear(12, 5, {.random = {.seed = 1}}), ReLU(),
                   Linear(5, 2, {.random = {.seed = 2}}));
  EXPECT_EQ(model.size(), 4U);
  EXPECT_EQ(names_of(model.parameters()), (Names{"1.weight", "1.bias", "3.weight", "3.bias"}));
  Linear first(12, 5, {.random = {.seed = 1}}), second(5, 2, {.random = {.seed = 2}});
  const Tensor x = random_tensor({3, 2, 6}, DType::f32, cpu_device, 1);
  EXPECT_EQ(values_of(model(x)), values_of(second(relu(first(flatten(x))))));
  sum(model(x)).backward();
  for (const auto& [name, parameter] : model.parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
}

TEST(SequentialOfTemporaries, TakesSequentialsAndPointers) {
  Sequential model(Sequential(Linear(3, 4), Tanh()), std::make_unique<Sequential>(),
                   std::make_unique<Linear>(4, 2), Sigmoid());
  EXPECT_EQ(names_of(model.parameters()), (Names{"0.0.weight", "0.0.bias", "2.weight", "2.bias"}));
  const Sequential moved(std::move(model));
  EXPECT_EQ(moved.size(), 4U);
  EXPECT_EQ(names_of(moved.parameters()), (Names{"0.0.weight", "0.0.bias", "2.weight", "2.bias"}));
  EXPECT_TRUE(model.parameters().empty());  // NOLINT: what a moved-from model promises
}

TEST(SequentialOfTemporaries, ConvolutionalNetwork_HasTheExpectedShapesAndState) {
  Sequential model(Conv2d(3, 8, {.kernel = 3, .window = {.padding = 1}}), BatchNorm(8), ReLU(), MaxPool2d(2),
                   Conv2d(8, 4, {.kernel = 1, .bias = false}), AvgPool2d(2), Dropout(0.25),
                   GlobalAvgPool2d());
  EXPECT_EQ(names_of(model.state_dict()),
            (Names{"0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "1.running_mean", "1.running_var",
                   "1.num_batches_tracked", "6.step"}));
  EXPECT_EQ(model(random_tensor({2, 8, 8, 3}, DType::f32, cpu_device, 1)).shape(), (Shape{2, 4}));
  EXPECT_EQ(model.buffers()[2].tensor.item<std::int64_t>(), 1);  // the layer counts in the registered tensor
  EXPECT_EQ(model.buffers()[3].tensor.item<std::int64_t>(), 1);
}

TEST(MovedLayers, KeepTensorsModeFreezingAndFileOrder) {
  Conv2d conv(3, 4, {.kernel = 3, .random = {.seed = 5}});
  conv.freeze();
  conv.eval();
  const NamedTensors before = conv.state_dict();
  Conv2d moved(std::move(conv));
  const NamedTensors after = moved.state_dict();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[0].tensor.shape(), (Shape{4, 3, 3, 3}));  // (out, in, kernel y, kernel x)
  EXPECT_EQ(after[0].tensor.bytes(), before[0].tensor.bytes());
  EXPECT_FALSE(moved.is_training());
  EXPECT_FALSE(moved.weight().requires_grad());
  moved.unfreeze();
  EXPECT_TRUE(moved.weight().requires_grad());
  EXPECT_NE(error_text([&] { conv(ones({1, 4, 4, 3})); }).find("undefined"), std::string::npos);  // NOLINT

  BatchNorm norm(3);
  norm.freeze_statistics();
  BatchNorm moved_norm(std::move(norm));
  EXPECT_FALSE(moved_norm.uses_batch_statistics());
  Dropout dropout(0.5, 3, 1), same(0.5, 3, 1);
  Dropout moved_dropout(std::move(dropout));
  EXPECT_EQ(values_of(moved_dropout(ones({50}))), values_of(same(ones({50}))));
}

TEST(PoolModules, MatchTheOperations) {
  const Tensor x = random_tensor({2, 7, 6, 3}, DType::f32, cpu_device, 1);
  EXPECT_EQ(values_of(MaxPool2d(2)(x)), values_of(max_pool2d(x, 2)));
  EXPECT_EQ(values_of(MaxPool2d(3, {.stride = 2, .padding = 1})(x)),
            values_of(max_pool2d(x, 3, {.stride = 2, .padding = 1})));
  EXPECT_EQ(values_of(AvgPool2d({3, 2})(x)), values_of(avg_pool2d(x, {3, 2})));
  EXPECT_EQ(values_of(GlobalAvgPool2d()(x)), values_of(adaptive_avg_pool2d(x, 1)));
  EXPECT_EQ(GlobalAvgPool2d()(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of(Flatten()(x)), values_of(x));
}

TEST(DefaultLayers, NeverStartEqual) {
  EXPECT_NE(values_of(Linear(8, 8).weight()), values_of(Linear(8, 8).weight()));
  EXPECT_NE(values_of(Conv2d(2, 8).weight()), values_of(Conv2d(2, 8).weight()));
  EXPECT_EQ(values_of(Linear(8, 8, {.random = {.seed = 1}}).weight()),
            values_of(Linear(8, 8, {.random = {.seed = 1, .stream = 0}}).weight()));
  manual_seed(5);
  const auto first = values_of(Linear(8, 8).weight());
  manual_seed(5);
  EXPECT_EQ(values_of(Linear(8, 8).weight()), first);
}

}  // namespace
}  // namespace tandem
