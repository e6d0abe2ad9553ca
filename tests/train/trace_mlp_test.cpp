// Which modules the perceptron engines accept, and that an own module trains like the built-in one.
#include "tandem/train/engines/trace_mlp.h"

#include <gtest/gtest.h>

#include <functional>

#include "tandem/data/loader/batch_source.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/activation.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/random.h"
#include "tandem/ops/reduce.h"
#include "tandem/train/engines/mlp_engine.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

// A module of three linear layers; `compute` is its forward().
struct Net : Module {
  using Compute = std::function<Tensor(Net&, const Tensor&)>;
  explicit Net(Compute function) : compute(std::move(function)) {
    add_child("output", output);  // not in the order of use
    add_child("hidden", hidden);
    add_child("middle", middle);
  }
  Tensor forward(const Tensor& x) override { return compute(*this, x); }

  Linear hidden{12, 8, {.random = {.seed = 1}}};
  Linear middle{8, 8, {.random = {.seed = 2}}};
  Linear output{8, 3, {.random = {.seed = 3}}};
  Compute compute;
};

Tensor flat(const Tensor& x) {
  return x.reshape({x.size(0), -1});
}

Tensor plain(Net& net, const Tensor& x) {
  return net.output(relu(net.middle(relu(net.hidden(flat(x))))));
}

std::optional<TracedMlp> trace(Net::Compute compute, LossKind loss = LossKind::cross_entropy) {
  Net net(std::move(compute));
  return trace_mlp(net, {2, 3, 2}, loss);
}

TEST(TraceMlp, OwnModule_IsRecognizedInTheOrderOfUse) {
  Net net(plain);
  const auto traced = trace_mlp(net, {2, 3, 2}, LossKind::cross_entropy);
  ASSERT_TRUE(traced);
  EXPECT_EQ(traced->shape.sizes, (std::vector<std::int64_t>{12, 8, 8, 3}));
  EXPECT_EQ(traced->shape.activation, MlpActivation::relu);
  ASSERT_EQ(traced->layers.size(), 3u);
  EXPECT_EQ(traced->layers[0].weight.bytes(), net.hidden.weight().bytes());
  EXPECT_EQ(traced->layers[1].bias.bytes(), net.middle.bias().bytes());
  EXPECT_EQ(traced->layers[2].weight.bytes(), net.output.weight().bytes());
  for (const NamedTensor& parameter : net.parameters()) EXPECT_FALSE(parameter.tensor.grad().defined());
}

TEST(TraceMlp, ModeOfTheModule_StaysAsItWas) {
  Net net(plain);
  net.eval();
  EXPECT_TRUE(trace_mlp(net, {12}, LossKind::cross_entropy));
  EXPECT_FALSE(net.is_training());
}

TEST(TraceMlp, MatmulAndBias_IsALinearLayer) {
  const auto layer = [](const Linear& linear, const Tensor& x) {
    return add(matmul(x, linear.weight().transpose()), linear.bias());
  };
  EXPECT_TRUE(trace([&](Net& net, const Tensor& x) {
    return layer(net.output, tanh(layer(net.middle, tanh(layer(net.hidden, flat(x))))));
  }));
}

TEST(TraceMlp, BuiltInPerceptron_IsRecognized) {
  const auto shape = [](const MlpOptions& options, LossKind loss) -> std::optional<MlpShape> {
    const auto traced = trace_mlp(*make_mlp(options), {8}, loss);
    return traced ? std::optional(traced->shape) : std::nullopt;
  };
  const auto tanh = shape({.layers = {8, 4, 3}, .activation = Activation::tanh}, LossKind::cross_entropy);
  ASSERT_TRUE(tanh);
  EXPECT_EQ(tanh->sizes, (std::vector<std::int64_t>{8, 4, 3}));
  EXPECT_EQ(tanh->activation, MlpActivation::tanh);
  EXPECT_TRUE(shape({.layers = {8, 3}}, LossKind::cross_entropy));
  EXPECT_FALSE(shape({.layers = {8, 4, 3}, .dropout = 0.5}, LossKind::cross_entropy));
  EXPECT_FALSE(shape({.layers = {8, 4, 3}}, LossKind::mse));
  EXPECT_TRUE(shape({.layers = {8, 4, 3}, .sigmoid_output = true}, LossKind::mse));
  EXPECT_FALSE(shape({.layers = {8, 4, 3}, .sigmoid_output = true}, LossKind::cross_entropy));
  EXPECT_FALSE(shape({.layers = {8, 4, 3}, .dtype = DType::f64}, LossKind::cross_entropy));
  EXPECT_FALSE(shape({.layers = {7, 4, 3}}, LossKind::cross_entropy));  // does not accept the samples
}

TEST(TraceMlp, OtherStructure_IsNotRecognized) {
  const auto rejects = [](Net::Compute compute) { return !trace(std::move(compute)); };
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // residual
    const Tensor y = relu(net.hidden(flat(x)));
    return net.output(relu(add(net.middle(y), y)));
  }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // activations that differ
    return net.output(relu(net.middle(tanh(net.hidden(flat(x))))));
  }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // no activation
    return net.output(relu(net.middle(net.hidden(flat(x)))));
  }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // shared layer
    return net.output(relu(net.middle(relu(net.middle(relu(net.hidden(flat(x))))))));
  }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // unused parameters
    return net.output(relu(net.hidden(flat(x))));
  }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return multiply(plain(net, x), 0.5); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return plain(net, multiply(x, 2.0)); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return plain(net, x.detach()); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return relu(plain(net, x)); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return plain(net, x.transpose(1, 2)); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return plain(net, x).detach(); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) { return multiply(plain(net, x), sum(x)); }));
  EXPECT_TRUE(rejects([](Net& net, const Tensor& x) {  // looks at the number of rows
    return x.size(0) == 2 ? plain(net, x) : multiply(plain(net, x), 3.0);
  }));
  EXPECT_TRUE(rejects([](Net&, const Tensor&) -> Tensor { throw Error("[net] not this batch"); }));
  EXPECT_TRUE(rejects([](Net&, const Tensor&) { return Tensor(); }));
}

TEST(TraceMlp, ActivationsThatTheEnginesLack_AreNotRecognized) {
  for (const ActivationRow& row : activations().rows()) {
    const bool known = row.activation == Activation::sigmoid || row.activation == Activation::tanh ||
                       row.activation == Activation::relu;
    const auto traced = trace([&](Net& net, const Tensor& x) {
      return net.output(row.apply(net.middle(row.apply(net.hidden(flat(x))))));
    });
    EXPECT_EQ(traced.has_value(), known) << row.name;
  }
}

TEST(TraceMlp, OutputThatDoesNotFollowFromTheTape_IsNotRecognized) {
  // The tape names a linear layer, but the values are others.
  EXPECT_FALSE(trace([](Net& net, const Tensor& x) {
    Tensor output = plain(net, x);
    output.data<float>()[0] += 1;
    return output;
  }));
}

TEST(TraceMlp, DropoutOrFrozenParameters_AreNotRecognized) {
  struct WithDropout : Net {
    WithDropout()
        : Net([this](Net& net, const Tensor& x) {
            return net.output(relu(dropout(net.middle(relu(net.hidden(flat(x)))))));
          }) {
      add_child("dropout", dropout);
    }
    Dropout dropout{0.5};
  } with_dropout;
  EXPECT_FALSE(trace_mlp(with_dropout, {12}, LossKind::cross_entropy));
  Net frozen(plain);
  frozen.middle.freeze();
  EXPECT_FALSE(trace_mlp(frozen, {12}, LossKind::cross_entropy));
}

// ---- training

struct Task {
  Task(std::unique_ptr<Module> network, Device device, const ImageInput& input) : model(std::move(network)) {
    model->to(device);
    const ImageSet images{
        .images = random_integers({40, 2, 3, 2}, 0, 256, {.seed = 5, .dtype = DType::u8, .device = device}),
        .labels = random_integers({40}, 0, 3, {.seed = 6, .dtype = DType::i32, .device = device}),
        .classes = {"a", "b", "c"}};
    source = std::make_unique<InMemorySource>(images, BatchPlan{.samples = 40, .batch_size = 7, .seed = 7});
    optimizer = std::make_unique<SGD>(model->parameters(), SgdOptions{.lr = 0.2, .momentum = 0.5});
    task = std::make_unique<TrainingTask>(TrainingTask{.model = *model,
                                                       .optimizer = *optimizer,
                                                       .source = *source,
                                                       .schedule = {},
                                                       .learning_rate = 0.2,
                                                       .input = input});
  }
  std::unique_ptr<Engine> fast() {
    return on_backend(source->device(), "test", [&]<Backend B>() { return make_mlp_engine<B>(*task); });
  }
  std::vector<float> train(const std::vector<std::string>& names) {
    const auto engine = fast();
    if (!engine) return {};
    engine->run(0, 0, source->plan().steps());
    engine->store();
    std::vector<float> all;
    const NamedTensors state = model->state_dict();
    for (const std::string& name : names)
      for (const NamedTensor& each : state)
        if (each.name == name)
          for (const float value : each.tensor.to_vector<float>()) all.push_back(value);
    return all;
  }

  std::unique_ptr<Module> model;
  std::unique_ptr<BatchSource> source;
  std::unique_ptr<FusedOptimizer> optimizer;
  std::unique_ptr<TrainingTask> task;
};

class MlpTraining : public testing::TestWithParam<Device> {};

TEST_P(MlpTraining, OwnModule_GivesTheBitsOfTheBuiltIn) {
  const auto built_in = [] {
    auto network = make_mlp({.layers = {12, 8, 8, 3}, .activation = Activation::relu});
    Net net(plain);
    NamedTensors state;
    const auto add = [&](const std::string& name, const Linear& layer) {
      state.push_back({name + ".weight", layer.weight().detach()});
      state.push_back({name + ".bias", layer.bias().detach()});
    };
    add("0", net.hidden);
    add("2", net.middle);
    add("4", net.output);
    network->load_state_dict(state);
    return network;
  };
  Task reference(built_in(), GetParam(), {});
  const ImageInput image{.flat = false, .height = 2, .width = 3, .channels = 2};
  Task own(std::make_unique<Net>(plain), GetParam(), image);
  const auto expected = reference.train({"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"});
  if (expected.empty()) GTEST_SKIP() << "no special engine for this network on " << GetParam().to_string();
  EXPECT_EQ(own.train({"hidden.weight", "hidden.bias", "middle.weight", "middle.bias", "output.weight",
                       "output.bias"}),
            expected);
}

TEST_P(MlpTraining, OtherTasks_AreDeclined) {
  const ImageInput image{.flat = false, .height = 2, .width = 3, .channels = 2};
  Task shifted(std::make_unique<Net>(plain), GetParam(),
               {.flat = false, .height = 2, .width = 3, .channels = 2, .norm = {.mean = {0.5f}}});
  EXPECT_FALSE(find_mlp(*shifted.task));
  Task mixed(std::make_unique<Net>(plain), GetParam(), image);
  EXPECT_TRUE(find_mlp(*mixed.task));
  mixed.task->mix.mixup = 0.2;
  EXPECT_FALSE(find_mlp(*mixed.task));
  Task partly(std::make_unique<Net>(plain), GetParam(), image);
  NamedTensors some = partly.model->parameters();
  some.resize(4);
  SGD partial(some);
  TrainingTask task{
      .model = *partly.model, .optimizer = partial, .source = *partly.source, .schedule = {}, .input = image};
  EXPECT_FALSE(find_mlp(task));
}

INSTANTIATE_TEST_SUITE_P(Devices, MlpTraining, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
