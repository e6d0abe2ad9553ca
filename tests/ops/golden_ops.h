// The stored PyTorch results of tests/golden/ops for the tests of operations: every case of an operation is
// run on the suite's device and dtype, forward and backward, and compared.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/golden/golden.h"
#include "tests/ops/op_test.h"

namespace tandem {

inline Tensor golden_tensor(const golden::Array& array, DType dtype, Device device) {
  return tensor_of(array.values<double>(), Shape(std::span<const std::int64_t>(array.shape)), dtype, device);
}

// Calls f(case, inputs) for every stored case of `op` and compares result and gradients. `inputs` are the
// case's arrays that have a gradient, in the order of their names.
inline void expect_golden(const std::string& op, DType dtype, Device device, double tolerance,
                          const std::function<Tensor(const golden::Case&, const std::vector<Tensor>&)>& f) {
  int cases = 0;
  for (const golden::Case& one : golden::load("ops")) {
    if (one.params.at("op") != op) continue;
    SCOPED_TRACE(one.name);
    ++cases;
    std::vector<Tensor> inputs;
    std::vector<std::string> names;
    for (const auto& [name, array] : one.arrays)
      if (one.arrays.contains("grad_" + name)) {
        inputs.push_back(golden_tensor(array, dtype, device).set_requires_grad());
        names.push_back(name);
      }
    const Tensor result = f(one, inputs);
    EXPECT_EQ(result.shape(), Shape(std::span<const std::int64_t>(one.array("expected").shape)));
    expect_values(result, one.array("expected").values<double>(), tolerance);
    backward(result, golden_tensor(one.array("grad_out"), dtype, device));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(inputs[i].grad().defined()) << names[i];
      expect_values(inputs[i].grad(), one.array("grad_" + names[i]).values<double>(), tolerance);
    }
  }
  EXPECT_GT(cases, 0) << "no stored case of " << op;
}

}  // namespace tandem
