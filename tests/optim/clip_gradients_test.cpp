#include "tandem/optim/clip_gradients.h"

#include <cmath>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/device/graph_runner.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// Parameters around the size of a chunk, and one without a gradient.
NamedTensors parameters_on(DType dtype, Device device) {
  NamedTensors all;
  for (const std::int64_t size : {1, 1023, 1024, 5000, 7}) {
    Tensor tensor = zeros({size}, dtype, device).set_requires_grad();
    if (size != 7)
      tensor.set_grad(random_tensor({size}, dtype, device, static_cast<std::uint32_t>(size), -1, 1));
    all.push_back({std::to_string(size), tensor});
  }
  return all;
}

std::vector<double> gradients_of(const NamedTensors& parameters) {
  std::vector<double> all;
  for (const auto& [name, tensor] : parameters)
    if (tensor.grad().defined())
      for (const double value : values_of(tensor.grad())) all.push_back(value);
  return all;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

class GradientClipTest : public OpTest {};

TEST_P(GradientClipTest, LargeNorm_IsScaledToTheLimit) {
  for (const double limit : {0.1, 3.0, 1e6}) {
    const NamedTensors parameters = parameters_on(dtype(), device());
    const std::vector<double> before = gradients_of(parameters);
    GradientClip clip(parameters, limit);
    clip.apply();
    const double norm = norm_of(before);
    expect_values(clip.norm(), {norm}, 1e-9);
    const double factor = std::min(1.0, limit / (norm + 1e-6));
    const std::vector<double> after = gradients_of(parameters);
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], factor * before[i], tolerance()) << i;
    EXPECT_FALSE(parameters.back().tensor.grad().defined());
  }
}

TEST_P(GradientClipTest, NormThatIsNotFinite_GivesGradientsThatAreNot) {
  const NamedTensors parameters = parameters_on(dtype(), device());
  copy_into(parameters[1].tensor.grad().slice(0, 3, 4),
            full({1}, std::numeric_limits<double>::infinity(), dtype(), device()));
  GradientClip(parameters, 1).apply();
  EXPECT_TRUE(std::isnan(values_of(parameters[1].tensor.grad())[3]));
}

// A gradient that is the same tensor for two parameters is scaled once for each.
TEST_P(GradientClipTest, SharedGradient_IsScaledOnce) {
  const NamedTensors parameters{{"a", zeros({2}, dtype(), device()).set_requires_grad()},
                                {"b", zeros({2}, dtype(), device()).set_requires_grad()}};
  const Tensor gradient = full({2}, 2, dtype(), device());
  for (const auto& [name, tensor] : parameters) tensor.set_grad(gradient);
  GradientClip clip(parameters, 2);
  clip.apply();
  for (const auto& [name, tensor] : parameters) expect_values(tensor.grad(), {1, 1}, 1e-6);
  expect_values(gradient, {2, 2}, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, GradientClipTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(GradientClip, AnyThreadCount_GivesSameBits) {
  const auto clipped = [](int threads) {
    const ThreadLimit limit(threads);
    const NamedTensors parameters = parameters_on(DType::f32, cpu_device);
    GradientClip(parameters, 0.5).apply();
    return gradients_of(parameters);
  };
  EXPECT_EQ(clipped(1), clipped(2));
}

TEST(GradientClip, BadInput_IsAnError) {
  const auto error = [](const NamedTensors& parameters, double norm) {
    return error_text([&] { GradientClip(parameters, norm).apply(); });
  };
  const NamedTensors one{{"w", zeros({2})}};
  for (const char* const text : {"0", "-1", "nan", "inf"})
    EXPECT_EQ(error(one, std::stod(text)),
              std::string("[clip_gradients] expected a finite norm above 0, got ") + text);
  EXPECT_EQ(error({}, 1), "[clip_gradients] expected parameters, got none");
  EXPECT_EQ(error({{"w", zeros({2}, DType::i64)}}, 1),
            "[clip_gradients] expected parameters of f32 or f64, got i64");
}

}  // namespace
}  // namespace tandem
