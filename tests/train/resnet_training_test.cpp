// Ten training steps of residual networks against PyTorch (tests/golden/make_resnet.py): Adam and SGD with
// StepLR, for the whole network and for the last layer only.
#include "tandem/optim/fused_optimizer.h"
#include "tandem/optim/schedule.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

std::unique_ptr<FusedOptimizer> optimizer_of(const golden::Case& one, const ResNet& model) {
  NamedTensors trainable;
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.tensor.requires_grad()) trainable.push_back(parameter);
  const double lr = one.params.at("lr");
  if (one.params.at("optimizer") == "adam") return std::make_unique<Adam>(trainable, AdamOptions{.lr = lr});
  return std::make_unique<SGD>(trainable, SgdOptions{.lr = lr, .momentum = 0.9});
}

std::vector<double> samples_of(const NamedTensors& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  check(found != tensors.end(), "[test] there is no {}", name);
  const std::vector<double> values = values_of(found->tensor);
  std::vector<double> samples;
  for (const std::size_t place : golden::sample_places(values.size())) samples.push_back(values[place]);
  return samples;
}

std::vector<double> difference(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// The weights of a whole network stay close to PyTorch's only while no ReLU input changes its sign and, for
// Adam, while gradients are larger than rounding errors (make_resnet.py has the figures). So the error is
// bounded per tensor, relative to its norm and to how far it moved; less strictly for running statistics,
// which accumulate the errors of all layers below them.
void expect_close(const golden::Case& one, const NamedTensors& initial, const NamedTensors& state) {
  const std::vector<std::string> names = one.params.at("state_names");
  const auto stored = one.array("state_samples").values<double>();
  double worst_weight = 0, worst_statistic = 0, worst_move = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto first = stored.begin() + static_cast<std::ptrdiff_t>(64 * i);
    const std::vector<double> expected(first, first + 64);
    const double error = norm_of(difference(samples_of(state, names[i]), expected));
    const double move = norm_of(difference(expected, samples_of(initial, names[i])));
    EXPECT_LE(error, 0.2 * move) << names[i] << " moved in another direction";
    const bool is_statistic = names[i].find("running") != std::string::npos;
    EXPECT_LE(error, (is_statistic ? 1e-3 : 1e-4) * norm_of(expected)) << names[i];
    double& worst = is_statistic ? worst_statistic : worst_weight;
    worst = std::max(worst, error / norm_of(expected));
    worst_move = std::max(worst_move, error / move);
  }
  testing::Test::RecordProperty(one.name, fmt::format("weights {:.1e}, statistics {:.1e}, move {:.1e}",
                                                      worst_weight, worst_statistic, worst_move));
}

class ResNetTraining : public testing::TestWithParam<Device> {};

TEST_P(ResNetTraining, TenSteps_EqualPyTorchGolden) {
  for (const golden::Case& one : resnet_cases("training")) {
    SCOPED_TRACE(one.name);
    const auto model = resnet_of(one, GetParam());
    if (one.params.at("frozen")) model->freeze_backbone();
    if (one.params.at("fixed")) model->freeze_statistics();
    NamedTensors initial = model->state_dict();
    for (NamedTensor& each : initial) each.tensor = each.tensor.clone();
    const std::unique_ptr<FusedOptimizer> optimizer = optimizer_of(one, *model);
    const ScheduleOptions schedule{
        .kind = ScheduleKind::step, .step_size = one.params.at("step_size"), .gamma = one.params.at("gamma")};
    const std::int64_t per_epoch = one.params.at("steps_per_epoch");
    const Tensor x = images_of(one, GetParam()), labels = labels_of(one, x);
    const auto losses = one.array("losses").values<double>();
    const double tolerance = one.params.at("whole") ? 1e-3 : 1e-4;  // of the losses
    ASSERT_EQ(losses.size(), 10U);
    for (std::int64_t step = 0; step < 10; ++step) {
      optimizer->zero_grad();
      const Tensor loss = cross_entropy((*model)(x), labels);
      EXPECT_LE(relative_error(values_of(loss), {losses[static_cast<std::size_t>(step)]}), tolerance) << step;
      backward(loss);
      optimizer->set_learning_rate(
          learning_rate_at(schedule, one.params.at("lr"), step / per_epoch, step % per_epoch, per_epoch));
      optimizer->step();
    }
    if (one.params.at("whole"))
      expect_close(one, initial, model->state_dict());
    else
      RecordProperty(one.name,
                     fmt::format("{:.1e}", expect_summaries(one, "state", model->state_dict(), 1e-4)));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ResNetTraining, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
