// Ten training steps of small perceptrons compared with PyTorch (tests/golden/training.*): network, loss,
// gradients, optimizer and schedule together.
#include <fmt/format.h>

#include "tandem/nn/mlp.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/mse.h"
#include "tandem/ops/one_hot.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/optim/schedule.h"
#include "tests/golden/golden.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

ScheduleOptions schedule_of(const golden::Case& one) {
  const auto& stored = one.params.at("schedule");
  const std::string kind = stored.at("kind");
  ScheduleOptions options{.epochs = stored.value("epochs", std::int64_t{1}),
                          .warmup_steps = stored.value("warmup_steps", std::int64_t{0}),
                          .step_size = stored.value("step_size", std::int64_t{1}),
                          .gamma = stored.value("gamma", 1.0),
                          .min_lr = stored.value("min_lr", 0.0)};
  if (kind == "step") options.kind = ScheduleKind::step;
  if (kind == "cosine") options.kind = ScheduleKind::cosine;
  if (kind == "one_cycle") options.kind = ScheduleKind::one_cycle;
  return options;
}

OptimizerOptions optimizer_options_of(const golden::Case& one) {
  const auto& stored = one.params.at("options");
  const std::string kind = one.params.at("optimizer");
  OptimizerOptions options{.kind = kind == "sgd"    ? OptimizerKind::sgd
                                   : kind == "adam" ? OptimizerKind::adam
                                                    : OptimizerKind::adamw,
                           .momentum = stored.value("momentum", 0.0),
                           .nesterov = stored.value("nesterov", false),
                           .weight_decay = stored.value("weight_decay", 0.0),
                           .epsilon = stored.value("eps", 1e-8)};
  if (stored.contains("betas")) {
    options.beta1 = stored.at("betas").at(0);
    options.beta2 = stored.at("betas").at(1);
  }
  return options;
}

Activation activation_of(const std::string& name) {
  for (const Activation activation : {Activation::sigmoid, Activation::tanh, Activation::relu})
    if (name == name_of(activation)) return activation;
  fail("[test] unknown activation {}", name);
}

Tensor stored_tensor(const golden::Case& one, const std::string& key, DType dtype, Device device) {
  const golden::Array& array = one.array(key);
  return tensor_of(array.values<double>(), Shape(std::span<const std::int64_t>(array.shape)), dtype, device);
}

// The network of a case, with its stored initial weights.
std::unique_ptr<Sequential> network_of(const golden::Case& one, DType dtype, Device device) {
  auto network = make_mlp({.layers = one.params.at("layers"),
                           .activation = activation_of(one.params.at("activation")),
                           .sigmoid_output = one.params.at("loss") == "mse",
                           .dtype = dtype});
  NamedTensors state = network->state_dict();
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i].tensor =
        stored_tensor(one, fmt::format("{}{}", i % 2 == 0 ? 'w' : 'b', i / 2), dtype, cpu_device);
  network->load_state_dict(state);
  network->to(device);
  return network;
}

std::vector<golden::Case> trajectories() {
  std::vector<golden::Case> cases;
  for (const golden::Case& one : golden::load("training"))
    if (one.params.at("op") == "trajectory") cases.push_back(one);
  EXPECT_GE(cases.size(), 12U);
  return cases;
}

class Trajectory : public OpTest {};

TEST_P(Trajectory, EveryStep_EqualsPyTorch) {
  const double allowed = dtype() == DType::f32 ? 1e-5 : 1e-11;
  for (const golden::Case& one : trajectories()) {
    SCOPED_TRACE(one.name);
    const auto network = network_of(one, dtype(), device());
    const double base_lr = one.params.at("options").at("lr");
    FusedOptimizer optimizer(network->parameters(), optimizer_options_of(one), base_lr);
    const double base_momentum = optimizer.momentum();
    const ScheduleOptions schedule = schedule_of(one);
    const std::int64_t per_epoch = one.params.at("steps_per_epoch");
    const Tensor x = stored_tensor(one, "x", dtype(), device());
    const Tensor labels = stored_tensor(one, "labels", DType::i32, device());
    const std::vector<double> expected = one.array("weights").values<double>();
    const std::vector<std::int64_t> batches = one.params.at("batches");
    ASSERT_EQ(batches.size(), 10U);
    std::int64_t begin = 0;
    for (std::int64_t step = 0; step < 10; ++step) {
      const std::int64_t end = begin + batches[static_cast<std::size_t>(step)];
      optimizer.zero_grad();
      const Tensor output = network->forward(x.slice(0, begin, end)), target = labels.slice(0, begin, end);
      backward(one.params.at("loss") == "mse"
                   ? mse_loss(output, one_hot(target, output.size(1), dtype()))
                   : cross_entropy(output, target, one.params.at("label_smoothing")));
      optimizer.set_learning_rate(
          learning_rate_at(schedule, base_lr, step / per_epoch, step % per_epoch, per_epoch));
      optimizer.set_momentum(
          momentum_at(schedule, base_momentum, step / per_epoch, step % per_epoch, per_epoch));
      optimizer.step();
      std::vector<double> weights;
      for (const auto& [name, tensor] : network->parameters())
        for (double value : values_of(tensor)) weights.push_back(value);
      ASSERT_EQ(weights.size() * 10, expected.size());
      for (std::size_t i = 0; i < weights.size(); ++i)
        ASSERT_NEAR(weights[i], expected[static_cast<std::size_t>(step) * weights.size() + i], allowed)
            << "weight " << i << " after step " << step + 1;
      begin = end;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Trajectory, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(Schedule, EveryStep_EqualsPyTorch) {
  for (const golden::Case& one : trajectories()) {
    const std::int64_t per_epoch = one.params.at("steps_per_epoch");
    const double base_lr = one.params.at("options").at("lr");
    const auto rates = one.array("rates").values<double>(), momenta = one.array("momenta").values<double>();
    const OptimizerOptions options = optimizer_options_of(one);
    const double momentum = options.kind == OptimizerKind::sgd ? options.momentum : options.beta1;
    for (std::int64_t step = 0; step < 10; ++step) {
      const auto i = static_cast<std::size_t>(step);
      EXPECT_NEAR(learning_rate_at(schedule_of(one), base_lr, step / per_epoch, step % per_epoch, per_epoch),
                  rates[i], 1e-14)
          << one.name << " at step " << step;
      EXPECT_NEAR(momentum_at(schedule_of(one), momentum, step / per_epoch, step % per_epoch, per_epoch),
                  momenta[i], 1e-14)
          << one.name << " at step " << step;
    }
  }
}

}  // namespace
}  // namespace tandem
