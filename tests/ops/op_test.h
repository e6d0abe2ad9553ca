// Shared by the tests of operations: parameterization over device × dtype, tolerances, random inputs,
// comparisons and the numerical gradient check. CUDA tests have `cuda` in their names and are registered only
// if there is a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tensor.h"
#include "tests/core/error_text.h"

namespace tandem {

struct OpCase {
  Device device;
  DType dtype;
};

inline std::vector<Device> test_devices() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  return devices;
}

inline std::vector<OpCase> op_cases(std::initializer_list<DType> dtypes) {
  std::vector<OpCase> cases;
  for (Device device : test_devices())
    for (DType dtype : dtypes) cases.push_back({device, dtype});
  return cases;
}

// "cpu_f32", "cuda_bf16": INSTANTIATE_TEST_SUITE_P(Devices, AddTest, ValuesIn(op_cases({…})), op_case_name).
inline std::string op_case_name(const testing::TestParamInfo<OpCase>& info) {
  return (info.param.device.is_cuda() ? "cuda_" : "cpu_") + std::string(name_of(info.param.dtype));
}

inline std::string device_name(const testing::TestParamInfo<Device>& info) {
  return info.param.is_cuda() ? "cuda" : "cpu";
}

// Base of suites that run for every device × dtype.
class OpTest : public testing::TestWithParam<OpCase> {
 protected:
  Device device() const { return GetParam().device; }
  DType dtype() const { return GetParam().dtype; }
  // The accuracy expected of this dtype, relative to the largest expected magnitude.
  double tolerance() const {
    switch (dtype()) {
      case DType::f64:
        return 1e-12;
      case DType::f32:
        return 1e-5;
      case DType::bf16:
        return 2e-2;
      default:
        return 0;
    }
  }
};

// Row-major values of any dtype, as doubles.
inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  on_dtype(AllTypes{}, tensor.dtype(), "values_of", [&]<class T>() {
    for (const T& value : tensor.to_vector<T>())
      if constexpr (std::same_as<T, BFloat16>)
        values.push_back(static_cast<float>(value));
      else
        values.push_back(static_cast<double>(value));
  });
  return values;
}

inline Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype,
                        Device device = cpu_device) {
  return on_dtype(AllTypes{}, dtype, "tensor_of", [&]<class T>() {
    std::vector<T> converted;
    for (double value : values)
      if constexpr (std::same_as<T, BFloat16>)
        converted.push_back(BFloat16(static_cast<float>(value)));
      else
        converted.push_back(static_cast<T>(value));
    return Tensor::from(converted, shape, device);
  });
}

// Uniform in [low, high); integers for integer dtypes. The same numbers for every device.
inline Tensor random_tensor(const Shape& shape, DType dtype, Device device, std::uint32_t seed,
                            double low = -2, double high = 2) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> sample(low, high);
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (double& value : values) value = is_floating(dtype) ? sample(generator) : std::floor(sample(generator));
  return tensor_of(values, shape, dtype, device);
}

// Checks that every element is within tolerance × the largest expected magnitude (at least 1). NaN equals
// NaN, ∞ equals ∞.
inline void expect_values(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = values_of(actual);
  ASSERT_EQ(values.size(), expected.size());
  double scale = 1;
  for (double value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i]))
      ASSERT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    else if (std::isinf(expected[i]))
      ASSERT_EQ(values[i], expected[i]) << "element " << i;
    else
      ASSERT_NEAR(values[i], expected[i], tolerance * scale) << "element " << i;
  }
}

// Compares backward() with central differences, in f64, for a function of several inputs. The function's
// output may have any shape: it is weighted by fixed random numbers and summed.
inline void expect_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                             std::vector<Tensor> inputs, double tolerance = 1e-6) {
  const Device device = inputs.front().device();
  for (Tensor& input : inputs) input.set_requires_grad();
  Tensor output = f(inputs);
  const Tensor weights = random_tensor(output.shape(), DType::f64, device, 99);
  backward(sum(multiply(output, weights)));
  const auto loss_with = [&](std::size_t input, std::size_t element, double delta) {
    std::vector<Tensor> shifted;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::vector<double> values = inputs[k].to_vector<double>();
      if (k == input) values[element] += delta;
      shifted.push_back(Tensor::from(values, inputs[k].shape(), device));
    }
    return sum(multiply(f(shifted), weights)).item<double>();
  };
  constexpr double step = 1e-5;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_TRUE(inputs[k].grad().defined() || inputs[k].numel() == 0) << "input " << k << " got no gradient";
    if (!inputs[k].grad().defined()) continue;
    ASSERT_EQ(inputs[k].grad().shape(), inputs[k].shape());
    const std::vector<double> gradient = inputs[k].grad().to_vector<double>();
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double numeric = (loss_with(k, i, step) - loss_with(k, i, -step)) / (2 * step);
      ASSERT_NEAR(gradient[i], numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << k << ", element " << i;
    }
  }
}

}  // namespace tandem
