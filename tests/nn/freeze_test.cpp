// Freezing, replacing the head, and modules written by users.
#include "tandem/nn/cnn.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/resnet.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/flatten.h"
#include "tandem/ops/mse.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// The network of the public example.
struct Net : Module {
  Conv2d conv{1, 4, {.kernel = 3}};
  Linear hidden{4 * 3 * 3, 8}, output{8, 3};
  Net() { add_children({{"conv", conv}, {"hidden", hidden}, {"output", output}}); }
  Tensor forward(const Tensor& x) override {
    return output(relu(hidden(flatten(max_pool2d(relu(conv(x)), 2)))));
  }
};
static_assert(!std::is_move_constructible_v<Net>, "a move would leave the new object without registrations");

const Tensor labels({0, 2}, DType::i64);

Tensor images() {
  return random_tensor({2, 8, 8, 1}, DType::f32, cpu_device, 1);
}

TEST(OwnModule, ParametersHaveTheNamesOfAddChildren) {
  Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv.weight", "conv.bias", "hidden.weight", "hidden.bias",
                                             "output.weight", "output.bias"}));
  EXPECT_EQ(&net.to(cpu_device), &net);
  EXPECT_EQ(&net.to("cpu"), &net);
}

TEST(OwnModule, BadRegistration_Throws) {
  struct Twice : Module {
    Linear a{2, 2}, b{2, 2};
    Twice() { add_children({{"a", a}, {"a", b}}); }
    Tensor forward(const Tensor& x) override { return x; }
  };
  EXPECT_EQ(error_text([] { Twice(); }), "[module] expected a new name for a child, got 'a'");
  struct Undefined : Module {
    Tensor weight;
    Undefined() { add_parameter("weight", weight); }
    Tensor forward(const Tensor& x) override { return x; }
  };
  EXPECT_EQ(error_text([] { Undefined(); }),
            "[module] expected a tensor for the parameter 'weight', got an undefined one");
  struct Unnamed : Module {
    Linear a{2, 2};
    Unnamed() { add_child("", a); }
    Tensor forward(const Tensor& x) override { return x; }
  };
  EXPECT_EQ(error_text([] { Unnamed(); }), "[module] expected a new name for a child, got ''");
}

TEST(Freeze, ThroughParameters_StopsTheGradients) {
  Net net;
  for (auto& p : net.parameters())
    if (!p.name.starts_with("output.")) p.tensor.set_requires_grad(false);
  cross_entropy(net(images()), labels).backward();
  for (const auto& [name, parameter] : net.parameters()) {
    EXPECT_EQ(parameter.requires_grad(), name.starts_with("output.")) << name;
    EXPECT_EQ(parameter.grad().defined(), name.starts_with("output.")) << name;
  }
  for (auto& p : net.parameters()) p.tensor.set_requires_grad(true);
  cross_entropy(net(images()), labels).backward();
  for (const auto& [name, parameter] : net.parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
}

TEST(Freeze, FreezeAndUnfreeze_ReachHandlesThatExist) {
  Net net;
  const NamedTensors handles = net.parameters();
  net.freeze();
  for (const auto& [name, parameter] : handles) EXPECT_FALSE(parameter.requires_grad()) << name;
  EXPECT_FALSE(net(images()).requires_grad());
  net.unfreeze();
  for (const auto& [name, parameter] : handles) EXPECT_TRUE(parameter.requires_grad()) << name;
  EXPECT_TRUE(net(images()).requires_grad());
}

TEST(Freeze, FrozenNetworkInEvaluation_StillLearnsAfterUnfreeze) {
  Cnn model({.classes = 3, .width = 4});
  model.freeze();
  model.eval();
  const Tensor x = images();
  const auto before = values_of(model(x));  // folds the batch norms into the convolutions
  model.unfreeze();
  {
    const NoGrad no_grad;
    for (auto& p : model.parameters())
      if (p.name == "conv1.weight") p.tensor *= 2;
  }
  model.freeze();
  EXPECT_NE(values_of(model(x)), before);
}

template <class Model>
void expect_replaceable_head(Model& model) {
  const std::int64_t features = model.feature_count();
  model.freeze();
  EXPECT_TRUE(model.is_backbone_frozen());
  model.eval();
  const auto values = values_of(model.features(images()));
  model.set_head(Linear(features, 5, {.random = {.seed = 9}}));
  EXPECT_FALSE(model.head_layer().is_training());
  EXPECT_EQ(model.head_layer().weight().shape(), (Shape{5, features}));
  EXPECT_EQ(model(images()).shape(), (Shape{2, 5}));
  EXPECT_EQ(values_of(model.features(images())), values);
  EXPECT_EQ(model.feature_count(), features);
  EXPECT_TRUE(model.is_backbone_frozen());
  cross_entropy(model(images()), labels).backward();
  for (const auto& [name, parameter] : model.parameters())
    EXPECT_EQ(parameter.grad().defined(), name.starts_with("fc.")) << name;
  EXPECT_EQ(model.parameters().back().tensor.shape(), (Shape{5}));
  model.unfreeze();
  EXPECT_FALSE(model.is_backbone_frozen());
  model.freeze_backbone();
  EXPECT_TRUE(model.is_backbone_frozen());
  EXPECT_TRUE(model.head_layer().weight().requires_grad());
  EXPECT_EQ(error_text([&] { model.set_head(Linear(features + 1, 2)); }),
            "[set_head] expected a layer with f32 weights (classes, " + std::to_string(features) +
                "), got f32 [2, " + std::to_string(features + 1) + "]");
  model.set_head(Linear(features, 2, {.bias = false}));
  EXPECT_EQ(model.parameters().back().name, "fc.weight");
}

TEST(Head, Cnn_IsReplaceable) {
  Cnn model({.classes = 3, .width = 4});
  expect_replaceable_head(model);
}

TEST(Head, ResNet_IsReplaceable) {
  ResNet model({.depth = 18, .classes = 3, .channels = 1});
  expect_replaceable_head(model);
}

TEST(LossObjects, MatchTheFunctions) {
  const Tensor logits = random_tensor({2, 3}, DType::f32, cpu_device, 1),
               target = random_tensor({2, 3}, DType::f32, cpu_device, 2);
  EXPECT_EQ(values_of(CrossEntropyLoss()(logits, labels)), values_of(cross_entropy(logits, labels)));
  EXPECT_EQ(values_of(CrossEntropyLoss{.label_smoothing = 0.1}(logits, labels)),
            values_of(cross_entropy(logits, labels, 0.1)));
  EXPECT_EQ(values_of(MSELoss()(logits, target)), values_of(mse_loss(logits, target)));
}

}  // namespace
}  // namespace tandem
