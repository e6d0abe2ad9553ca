// Compares operations and their gradients with stored results of PyTorch (tests/golden/ops.* and others).
#pragma once

#include "tests/golden/golden.h"
#include "tests/ops/op_test.h"

namespace tandem {

inline std::vector<golden::Case> golden_cases(const std::string& op, const std::string& file = "ops") {
  std::vector<golden::Case> cases;
  for (const golden::Case& one : golden::load(file))
    if (one.params.at("op") == op) cases.push_back(one);
  EXPECT_FALSE(cases.empty()) << "no stored cases of " << op;
  return cases;
}

inline Tensor golden_tensor(const golden::Case& one, const std::string& key, DType dtype, Device device) {
  const golden::Array& array = one.array(key);
  return tensor_of(array.values<double>(), Shape(std::span<const std::int64_t>(array.shape)), dtype, device);
}

// Checks that f of the named inputs gives "expected" and that backward() from "grad_out" gives "grad_<name>"
// for each input.
inline void expect_golden(const golden::Case& one, const std::vector<std::string>& names, DType dtype,
                          Device device, double tolerance,
                          const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  SCOPED_TRACE(one.name);
  std::vector<Tensor> inputs;
  for (const std::string& name : names)
    inputs.push_back(golden_tensor(one, name, dtype, device).set_requires_grad());
  const Tensor output = f(inputs);
  EXPECT_EQ(output.shape(), golden_tensor(one, "expected", dtype, device).shape());
  expect_values(output, one.array("expected").values<double>(), tolerance);
  backward(output, golden_tensor(one, "grad_out", dtype, device));
  for (std::size_t i = 0; i < names.size(); ++i)
    expect_values(inputs[i].grad(), one.array("grad_" + names[i]).values<double>(), tolerance);
}

// The same for every stored case of `op`. The inputs are the arrays with a gradient, ordered by name.
inline void expect_golden(const std::string& op, DType dtype, Device device, double tolerance,
                          const std::function<Tensor(const golden::Case&, const std::vector<Tensor>&)>& f,
                          const std::string& file = "ops") {
  for (const golden::Case& one : golden_cases(op, file)) {
    std::vector<std::string> names;
    for (const auto& [name, array] : one.arrays)
      if (one.arrays.contains("grad_" + name)) names.push_back(name);
    expect_golden(one, names, dtype, device, tolerance,
                  [&](const std::vector<Tensor>& in) { return f(one, in); });
  }
}

}  // namespace tandem
