// Ten steps with the options of the training step, compared with PyTorch (tests/golden/steps.*): class
// weights, focal loss, accumulation, clipped gradients, averaged weights, frozen stages and rates of stages.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/conv2d.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/cast.h"
#include "tandem/train/training_state.h"
#include "tests/device/device_cases.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

struct Perceptron : Module {
  Perceptron() {
    add_child("first", first);
    add_child("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(tanh(first(x.reshape({x.size(0), 64})))); }
  Linear first{64, 6}, last{6, 3};
};

struct Convolutions : BackboneModel {
  Convolutions() : BackboneModel(6, 3, 1) {
    add_child("conv1", conv1);
    add_child("conv2", conv2);
    add_child("fc", head_layer());
  }
  Tensor features(const Tensor& x) override { return image_mean(relu(conv2(relu(conv1(x))))); }
  void freeze_statistics() override {}
  std::vector<std::vector<std::string>> stages() const override { return {{"conv1"}, {"conv2"}}; }
  Conv2d conv1{1, 4, {.window = {.padding = {1, 1}}}};
  Conv2d conv2{4, 6, {.window = {.stride = {2, 2}, .padding = {1, 1}}}};
};

Shape shape_of(const golden::Array& array) {
  return Shape(std::span<const std::int64_t>(array.shape));
}

std::unique_ptr<Module> network_of(const golden::Case& one) {
  std::unique_ptr<Module> network;
  if (one.params.at("network") == "Perceptron")
    network = std::make_unique<Perceptron>();
  else
    network = std::make_unique<Convolutions>();
  NamedTensors initial;
  for (const std::string name : one.params.at("parameters")) {
    const golden::Array& array = one.array("initial." + name);
    initial.push_back({name, Tensor::from(array.values<float>(), shape_of(array))});
  }
  network->load_state_dict(initial);
  if (auto* const backbone = dynamic_cast<BackboneModel*>(network.get()))
    backbone->freeze_stages(one.params.at("frozen"));
  return network;
}

FitOptions options_of(const golden::Case& one) {
  const auto& params = one.params;
  const auto& hyper = params.at("hyper");
  FitOptions options;
  options.epochs = 1;
  options.batch_size = params.at("batch");
  options.shuffle = false;
  options.optimizer = params.at("optimizer");
  options.learning_rate = hyper.at("lr");
  options.momentum = hyper.value("momentum", 0.0);
  options.weight_decay = hyper.value("weight_decay", 0.0);
  options.label_smoothing = params.at("label_smoothing");
  const std::vector<double> weights = params.at("class_weights");
  for (std::size_t i = 0; i < weights.size(); ++i)
    options.class_weights.named.emplace_back(fmt::format("class {}", i), weights[i]);
  if (params.at("focal_gamma") >= 0) {
    options.loss = LossKind::focal;
    options.focal_gamma = params.at("focal_gamma");
  }
  options.clip_norm = params.at("clip_norm");
  options.ema = params.at("ema");
  options.stage_lr_decay = params.at("stage_lr_decay");
  options.accumulate = options.shards = params.at("accumulate");
  options.precision = MatmulPrecision::fp32;
  check_fit_options(options);
  return options;
}

std::vector<double> values_of(const NamedTensors& tensors) {
  std::vector<double> all;
  for (const auto& [name, tensor] : tensors)
    for (const float value : tensor.detach().contiguous().to_vector<float>()) all.push_back(value);
  return all;
}

void expect_near(const std::vector<double>& got, const golden::Array& expected, std::int64_t step) {
  const std::vector<double> all = expected.values<double>();
  ASSERT_EQ(got.size() * 10, all.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], all[static_cast<std::size_t>(step) * got.size() + i], 1e-5)
        << "value " << i << " after step " << step + 1;
}

class StepOptions : public testing::TestWithParam<Device> {};

TEST_P(StepOptions, EveryStep_EqualsPyTorch) {
  int count = 0;
  for (const golden::Case& one : golden::load("steps")) {
    if (one.params.at("op") != "steps") continue;
    SCOPED_TRACE(one.name);
    ++count;
    const golden::Array& images = one.array("images");
    const ImageSet set{.images = Tensor::from(images.values<std::uint8_t>(), shape_of(images)),
                       .labels = Tensor::from(one.array("labels").values<std::int32_t>(), {images.shape[0]}),
                       .classes = {"class 0", "class 1", "class 2"}};
    const std::unique_ptr<Module> network = network_of(one);
    TrainingState state(*network, options_of(one), set,
                        {.flat = false, .height = 8, .width = 8, .channels = 1}, GetParam());
    for (std::int64_t step = 0; step < 10; ++step) {
      state.engine().run(0, step, 1);
      state.engine().store();
      expect_near(values_of(network->state_dict()), one.array("weights"), step);
      WeightAverage* const average = state.task().average;
      if (!average) continue;
      average->swap(*network);
      expect_near(values_of(network->state_dict()), one.array("averages"), step);
      average->swap(*network);
    }
  }
  EXPECT_EQ(count, 25);
}

// Parts of 8, and parts that are not all of one size, also of a last batch with fewer images than parts.
TEST_P(StepOptions, AccumulatedBatches_EqualWholeOnes) {
  const std::vector<golden::Case> cases = golden::load("steps");
  const golden::Case& one = *std::ranges::find(cases, "steps convolutions accumulated", &golden::Case::name);
  const golden::Array& images = one.array("images");
  const ImageSet set{
      .images = Tensor::from(images.values<std::uint8_t>(), shape_of(images)).slice(0, 0, 66),
      .labels = Tensor::from(one.array("labels").values<std::int32_t>(), {images.shape[0]}).slice(0, 0, 66),
      .classes = {"class 0", "class 1", "class 2"}};
  for (const std::int64_t parts : {4, 5})
    for (const bool weighted : {false, true}) {
      SCOPED_TRACE(parts);
      FitOptions options;
      options.epochs = 4;
      options.batch_size = 32;
      options.momentum = 0.9;
      options.learning_rate = 0.05;
      options.precision = MatmulPrecision::fp32;
      options.class_weights.balanced = weighted;
      const auto trained = [&](std::int64_t accumulate) {
        options.accumulate = options.shards = accumulate;
        const std::unique_ptr<Module> network = network_of(one);
        TrainingState state(*network, options, set, {.flat = false, .height = 8, .width = 8, .channels = 1},
                            GetParam());
        StepSums sums;
        for (std::int64_t epoch = 0; epoch < 4; ++epoch) sums += state.engine().run(epoch, 0, 3);
        std::vector<double> values = values_of(network->state_dict());
        values.push_back(sums.loss / static_cast<double>(sums.samples));
        return values;
      };
      const std::vector<double> whole = trained(1), accumulated = trained(parts);
      for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(accumulated[i], whole[i], 1e-6) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, StepOptions, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
