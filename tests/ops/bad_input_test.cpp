// Every operation called with an undefined tensor, or with tensors of different devices, throws Error.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/ops/accuracy.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/compare.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/correlate.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/flatten.h"
#include "tandem/ops/gather.h"
#include "tandem/ops/linear.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/maximum.h"
#include "tandem/ops/mse.h"
#include "tandem/ops/one_hot.h"
#include "tandem/ops/pow.h"
#include "tandem/ops/softmax.h"
#include "tandem/ops/unary.h"
#include "tandem/ops/xxt.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

using Call = std::pair<std::string, std::function<void(const Tensor&)>>;

std::vector<Call> calls_of_one() {
  return {{"sigmoid", [](const Tensor& x) { sigmoid(x); }},
          {"tanh", [](const Tensor& x) { tanh(x); }},
          {"relu", [](const Tensor& x) { relu(x); }},
          {"cast", [](const Tensor& x) { cast(x, DType::f64); }},
          {"exp", [](const Tensor& x) { exp(x); }},
          {"sign", [](const Tensor& x) { sign(x); }},
          {"pow", [](const Tensor& x) { pow(x, 3); }},
          {"negate", [](const Tensor& x) { -x; }},
          {"add", [](const Tensor& x) { x + 1; }},
          {"flatten", [](const Tensor& x) { flatten(x); }},
          {"sum", [](const Tensor& x) { sum(x); }},
          {"mean", [](const Tensor& x) { mean(x); }},
          {"max", [](const Tensor& x) { max(x); }},
          {"argmax", [](const Tensor& x) { argmax(x, 0); }},
          {"softmax", [](const Tensor& x) { softmax(x); }},
          {"log_softmax", [](const Tensor& x) { log_softmax(x); }},
          {"one_hot", [](const Tensor& x) { one_hot(x, 3); }},
          {"xxt", [](const Tensor& x) { xxt(x); }},
          {"max_pool2d", [](const Tensor& x) { max_pool2d(x, 2); }},
          {"avg_pool2d", [](const Tensor& x) { avg_pool2d(x, 2); }},
          {"adaptive_avg_pool2d", [](const Tensor& x) { adaptive_avg_pool2d(x, 1); }},
          {"zeros_like", [](const Tensor& x) { zeros_like(x); }},
          {"backward", [](const Tensor& x) { x.backward(); }},
          {"item", [](const Tensor& x) { x.item<double>(); }},
          {"reshape", [](const Tensor& x) { x.reshape(1); }},
          {"permute", [](const Tensor& x) { x.permute({}); }},
          {"transpose", [](const Tensor& x) { x.transpose(); }},
          {"slice", [](const Tensor& x) { x.slice(0, 0, 1); }},
          {"set_requires_grad", [](const Tensor& x) { Tensor(x).set_requires_grad(); }}};
}

std::vector<std::pair<std::string, std::function<void(const Tensor&, const Tensor&)>>> calls_of_two() {
  return {{"add", [](const Tensor& a, const Tensor& b) { a + b; }},
          {"divide", [](const Tensor& a, const Tensor& b) { a / b; }},
          {"+=", [](const Tensor& a, const Tensor& b) { Tensor(a) += b; }},
          {"/=", [](const Tensor& a, const Tensor& b) { Tensor(a) /= b; }},
          {"maximum", [](const Tensor& a, const Tensor& b) { maximum(a, b); }},
          {"equal", [](const Tensor& a, const Tensor& b) { equal(a, b); }},
          {"matmul", [](const Tensor& a, const Tensor& b) { matmul(a, b); }},
          {"linear", [](const Tensor& a, const Tensor& b) { linear(a, b, Tensor()); }},
          {"conv2d", [](const Tensor& a, const Tensor& b) { conv2d(a, b, Tensor()); }},
          {"correlate", [](const Tensor& a, const Tensor& b) { correlate(a, b); }},
          {"concat",
           [](const Tensor& a, const Tensor& b) {
             concat({a, b}, 0);
           }},
          {"gather_rows", [](const Tensor& a, const Tensor& b) { gather_rows(a, b); }},
          {"mse_loss", [](const Tensor& a, const Tensor& b) { mse_loss(a, b); }},
          {"cross_entropy", [](const Tensor& a, const Tensor& b) { cross_entropy(a, b); }},
          {"accuracy", [](const Tensor& a, const Tensor& b) { accuracy(a, b); }},
          {"backward", [](const Tensor& a, const Tensor& b) { backward(a, b); }}};
}

TEST(BadInput, UndefinedTensor_Throws) {
  const Tensor x = ones({2, 2});
  for (const auto& [name, call] : calls_of_one()) EXPECT_THROW(call(Tensor()), Error) << name;
  for (const auto& [name, call] : calls_of_two()) {
    EXPECT_THROW(call(Tensor(), x), Error) << name;
    EXPECT_THROW(call(x, Tensor()), Error) << name;
    EXPECT_THROW(call(Tensor(), Tensor()), Error) << name;
  }
}

TEST(BadInput, Backward_WithoutAScalarThatRequiresAGradient_Throws) {
  Tensor x = ones({3}).set_requires_grad();
  EXPECT_EQ(error_text([&] { (x * 2).backward(); }),
            "[backward] expected a loss of one element, got shape [3]");
  EXPECT_EQ(
      error_text([] { ones({}).backward(); }),
      "[backward] expected a result that depends on a tensor with requires_grad, got one that does not");
  EXPECT_EQ(error_text([] { Tensor().backward(); }), "[backward] expected a tensor, got an undefined one");
  EXPECT_EQ(error_text([&] { x.item<double>(); }), "[tensor] expected a tensor of 1 element, got shape [3]");
}

TEST(BadInput, cuda_MixedDevices_Throw) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  const Tensor here = ones({1, 2, 2, 1}), there = here.to("cuda:0");
  for (const auto& [name, call] : calls_of_two()) {
    EXPECT_THROW(call(here, there), Error) << name;
    EXPECT_THROW(call(there, here), Error) << name;
  }
}

}  // namespace
}  // namespace tandem
