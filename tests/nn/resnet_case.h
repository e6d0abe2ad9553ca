// Shared by the tests of residual networks: a network with the weights of a golden case, and comparison with
// the norms and samples stored for every tensor.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tandem/nn/resnet.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/tensor/tape.h"
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"
#include "tests/ops/op_test.h"

namespace tandem {

inline std::vector<golden::Case> resnet_cases(const std::string& op) {
  std::vector<golden::Case> cases;
  for (const golden::Case& one : golden::load("resnet"))
    if (one.params.at("op") == op) cases.push_back(one);
  EXPECT_FALSE(cases.empty()) << "no stored cases of " << op;
  return cases;
}

// Moves the biases of batch norms away from the kinks of ReLUs, as make_resnet.py does.
inline void nudge_biases(NamedTensors& state, const std::vector<float>& steps) {
  std::size_t next = 0;
  for (const auto& [name, tensor] : state) {
    const bool is_norm = name.find("bn") != name.npos || name.find("downsample.1") != name.npos;
    if (!is_norm || !name.ends_with(".bias")) continue;
    for (float& bias : std::span(tensor.data<float>(), static_cast<std::size_t>(tensor.numel())))
      bias = static_cast<float>(double{bias} + double{steps.at(next++)} / 128);
  }
  EXPECT_EQ(next, steps.size());
}

inline void load_case(Module& model, const golden::Case& one) {
  NamedTensors state = golden::hashed_state(model, one.params.at("salt"));
  if (one.arrays.contains("nudges")) nudge_biases(state, one.array("nudges").values<float>());
  model.load_state_dict(state);
}

inline std::unique_ptr<ResNet> resnet_of(const golden::Case& one, Device device) {
  auto model = std::make_unique<ResNet>(
      ResNetOptions{.depth = one.params.at("depth"), .classes = one.params.at("classes")});
  load_case(*model, one);
  model->to(device);
  return model;
}

inline Tensor images_of(const golden::Case& one, Device device) {
  const std::vector<std::int64_t> shape = one.params.at("shape");
  const std::string salt = one.params.at("salt");
  return golden::hashed(salt + "x", Shape(std::span<const std::int64_t>(shape))).to(device);
}

inline Tensor labels_of(const golden::Case& one, const Tensor& images) {
  return golden::step_labels(images.size(0), one.params.at("classes")).to(images.device());
}

// The maximum difference, relative to the maximum expected magnitude.
inline double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, scale = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    error = std::isnan(difference) ? difference : std::max(error, difference);
    if (std::isnan(error)) break;
    scale = std::max(scale, std::abs(expected[i]));
  }
  return error == 0 ? 0 : error / scale;
}

inline double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Compares tensors in PyTorch's layout with "<prefix>_norms" and "<prefix>_samples"; returns the maximum
// error.
inline double expect_summaries(const golden::Case& one, const std::string& prefix,
                               const NamedTensors& tensors, double tolerance) {
  const std::vector<std::string> names = one.params.at(prefix + "_names");
  const auto norms = one.array(prefix + "_norms").values<double>();
  const auto samples = one.array(prefix + "_samples").values<double>();
  double max_error = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = std::ranges::find(tensors, names[i], &NamedTensor::name);
    if (found == tensors.end()) {
      ADD_FAILURE() << "missing: " << names[i];
      continue;
    }
    const std::vector<double> values = values_of(found->tensor);
    std::vector<double> sampled;
    for (const std::size_t place : golden::sample_places(values.size())) sampled.push_back(values[place]);
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(64 * i);
    const double error =
        std::max(relative_error(sampled, {first, first + 64}), relative_error({norm_of(values)}, {norms[i]}));
    EXPECT_LE(error, tolerance) << names[i];
    max_error = std::max(max_error, error);
  }
  return max_error;
}

// In PyTorch's layout.
inline NamedTensors gradients_of(const Module& model) {
  NamedTensors gradients;
  for (const auto& [name, parameter] : model.parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    gradients.push_back({name, gradient.rank() == 4 ? gradient.permute({0, 3, 1, 2}) : gradient});
  }
  return gradients;
}

// Compares evaluation and then one training step without an update with a golden case.
inline void expect_step(Module& model, const golden::Case& one, Device device, double tolerance) {
  const Tensor x = images_of(one, device);
  const auto expected = [&](const char* key) { return one.array(key).values<double>(); };
  model.eval();
  EXPECT_LE(relative_error(values_of(model(x)), expected("evaluated")), tolerance);
  {
    const NoGrad no_grad;  // with the norms folded into the convolutions
    EXPECT_LE(relative_error(values_of(model(x)), expected("evaluated")), tolerance);
  }
  model.train();
  const Tensor logits = model(x), loss = cross_entropy(logits, labels_of(one, x));
  EXPECT_LE(relative_error(values_of(logits), expected("logits")), tolerance);
  EXPECT_LE(relative_error(values_of(loss), expected("loss")), tolerance);
  backward(loss);
  const double gradients = expect_summaries(one, "grad", gradients_of(model), tolerance);
  const double statistics = expect_summaries(one, "state", model.state_dict(), tolerance);
  testing::Test::RecordProperty(fmt::format("{}.gradients", one.name), fmt::format("{:.1e}", gradients));
  testing::Test::RecordProperty(fmt::format("{}.statistics", one.name), fmt::format("{:.1e}", statistics));
  for (const auto& [name, buffer] : model.buffers()) {
    if (!name.ends_with("num_batches_tracked")) continue;
    EXPECT_EQ(values_of(buffer), (std::vector<double>{1})) << name;
  }
}

}  // namespace tandem
