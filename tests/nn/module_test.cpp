#include "tandem/nn/module.h"

#include "tandem/nn/activation.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/mlp.h"
#include "tandem/nn/sequential.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// A module with a parameter, a buffer and two levels of children.
class Block : public Module {
 public:
  Block() {
    add_parameter("scale", scale_);
    add_buffer("count", count_);
    body_.emplace<Linear>(3, 2);
    body_.emplace<ActivationLayer>(Activation::relu);
    body_.emplace<Linear>(2, 1, LinearOptions{.bias = false});
    add_child("body", body_);
  }
  Tensor forward(const Tensor& x) override { return body_(multiply(x, scale_)); }
  Tensor& scale() { return scale_; }
  Sequential& body() { return body_; }

 private:
  Tensor scale_ = ones({3}), count_ = zeros({}, DType::i64);
  Sequential body_;
};

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(Module, Names_AreJoinedByDotsInOrderOfRegistration) {
  const Block block;
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(block.parameters()), (Names{"scale", "body.0.weight", "body.0.bias", "body.2.weight"}));
  EXPECT_EQ(names_of(block.buffers()), Names{"count"});
  EXPECT_EQ(names_of(block.state_dict()),
            (Names{"scale", "body.0.weight", "body.0.bias", "body.2.weight", "count"}));
  for (const auto& [name, tensor] : block.parameters()) EXPECT_TRUE(tensor.requires_grad()) << name;
  for (const auto& [name, tensor] : block.state_dict()) EXPECT_FALSE(tensor.requires_grad()) << name;
}

TEST(Module, Train_ReachesPresentAndFutureChildren) {
  Block block;
  EXPECT_TRUE(block.is_training() && block.body()[0].is_training());
  block.eval();
  EXPECT_FALSE(block.is_training() || block.body().is_training() || block.body()[2].is_training());
  EXPECT_FALSE(block.body().emplace<Linear>(1, 1).is_training());
  block.train();
  EXPECT_TRUE(block.body()[3].is_training());
}

TEST(Module, LoadStateDict_CopiesAllValues) {
  Block from, to;
  for (const auto& [name, tensor] : from.state_dict()) {
    if (tensor.dtype() == DType::f32)
      copy_into(tensor, random_tensor(tensor.shape(), DType::f32, cpu_device, 7));
    else
      *tensor.data<std::int64_t>() = 41;
  }
  const NamedTensors handles = to.parameters();  // as an optimizer holds them
  NamedTensors state = from.state_dict();
  std::swap(state.front(), state.back());  // the order does not matter
  to.load_state_dict(state);
  const NamedTensors saved = from.state_dict(), loaded = to.state_dict();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    EXPECT_EQ(values_of(loaded[i].tensor), values_of(saved[i].tensor)) << saved[i].name;
    EXPECT_NE(loaded[i].tensor.bytes(), saved[i].tensor.bytes());
  }
  EXPECT_EQ(handles[0].tensor.bytes(), to.scale().bytes());
  EXPECT_TRUE(to.scale().requires_grad());
}

TEST(Module, LoadStateDict_Mismatch_ListsNamesAndChangesNothing) {
  Block block;
  NamedTensors state = block.state_dict();
  for (auto& [name, tensor] : state) tensor = ones(tensor.shape(), tensor.dtype());
  const std::vector<double> before = values_of(block.parameters()[1].tensor);
  NamedTensors wrong = state;
  wrong[1].tensor = ones({5, 3});
  wrong[2].tensor = ones({2}, DType::f64);
  wrong[3].name = "head.weight";
  wrong.push_back(wrong[0]);
  EXPECT_EQ(
      error_text([&] { block.load_state_dict(wrong); }),
      "[load_state_dict] expected the 5 tensors of this model; missing: body.2.weight; unexpected: "
      "head.weight; given twice: scale; different: body.0.weight (expected f32 [2, 3], got f32 [5, 3]), "
      "body.0.bias (expected f32 [2], got f64 [2])");
  EXPECT_EQ(values_of(block.parameters()[1].tensor), before);
  EXPECT_EQ(values_of(block.scale()), (std::vector<double>{1, 1, 1}));
  const auto wide = make_mlp({.layers = std::vector<std::int64_t>(12, 1)});
  EXPECT_EQ(
      error_text([&] { wide->load_state_dict({}); }),
      "[load_state_dict] expected the 22 tensors of this model; missing: 0.weight, 0.bias, 2.weight, 2.bias, "
      "4.weight, 4.bias, 6.weight, 6.bias and 14 more");
}

class ModuleOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ModuleOnDevice, To_MovesEverythingAndGivesTheSameResult) {
  Block block;
  const Tensor x = random_tensor({4, 3}, DType::f32, cpu_device, 2);
  block.scale().set_requires_grad(false);  // frozen, and stays frozen
  backward(sum(block(x)));
  const auto expected = values_of(block(x)), gradient = values_of(block.parameters()[1].tensor.grad());
  block.to(GetParam());
  for (const auto& [name, tensor] : block.state_dict()) EXPECT_EQ(tensor.device(), GetParam()) << name;
  expect_values(block(x.to(GetParam())), expected, 1e-5);
  EXPECT_FALSE(block.scale().requires_grad());
  const Tensor weight = block.parameters()[1].tensor;
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(values_of(weight.grad()), gradient);
  backward(sum(block(x.to(GetParam()))));
  EXPECT_NE(values_of(weight.grad()), gradient);  // added to the moved gradient
  block.zero_grad();
  for (const auto& [name, tensor] : block.parameters()) EXPECT_FALSE(tensor.grad().defined()) << name;
  Block other;
  other.load_state_dict(block.state_dict());  // across devices
  EXPECT_EQ(values_of(other.parameters()[1].tensor), values_of(weight));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModuleOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Sequential, Forward_ComposesItsModules) {
  Sequential network;
  const Tensor x = random_tensor({2, 3}, DType::f32, cpu_device, 1);
  EXPECT_EQ(values_of(network(x)), values_of(x));
  const Linear& layer = network.emplace<Linear>(3, 4);
  network.append(std::make_unique<ActivationLayer>(Activation::tanh));
  EXPECT_EQ(network.size(), 2U);
  EXPECT_EQ(&network[0], &layer);
  EXPECT_EQ(values_of(network(x)), values_of(tanh(network[0](x))));
  EXPECT_EQ(error_text([&] { network[2]; }), "[sequential] expected an index below 2, got 2");
  EXPECT_EQ(error_text([&] { network.append(nullptr); }), "[sequential] expected a module, got none");
}

}  // namespace
}  // namespace tandem
