#include "tandem/optim/lookahead.h"

#include <cmath>

#include "tandem/nn/linear.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// Parameters around the size of a chunk; buffers of their dtype and of i64.
class Net : public Module {
 public:
  explicit Net(DType dtype = DType::f32)
      : weight_(ones({41, 25}, dtype)), bias_(ones({3}, dtype)), mean_(zeros({5}, dtype)) {
    add_parameter("weight", weight_);
    add_parameter("bias", bias_);
    add_buffer("count", count_);
    add_buffer("mean", mean_);
  }
  Tensor forward(const Tensor& x) override { return x; }

 private:
  Tensor weight_, bias_, mean_, count_ = zeros({}, DType::i64);
};

// The tensors that are averaged: all but the counter.
std::vector<double> values_in(const Module& module) {
  std::vector<double> values;
  for (const NamedTensors& list : {module.parameters(), module.buffers()})
    for (const auto& [name, tensor] : list)
      if (name != "count")
        for (const double value : values_of(tensor)) values.push_back(value);
  return values;
}

std::vector<double> values_in(const Lookahead& lookahead) {
  std::vector<double> values;
  for (const auto& [name, tensor] : lookahead.state())
    for (const double value : values_of(tensor)) values.push_back(value);
  return values;
}

void change(const Module& module, std::uint32_t seed) {
  for (const NamedTensors& list : {module.parameters(), module.buffers()})
    for (const auto& [name, tensor] : list)
      copy_into(tensor.detach(), random_tensor(tensor.shape(), tensor.dtype(), tensor.device(), ++seed));
}

class LookaheadTest : public OpTest {};

TEST_P(LookaheadTest, AfterStep_FollowsTheFormula) {
  constexpr std::int64_t steps = 7;
  Net net(dtype());
  net.to(device());
  change(net, 1);
  std::vector<double> slow = values_in(net);
  Lookahead lookahead(net, {.every = 3, .decay = 0.9});
  for (std::int64_t step = 1; step <= steps; ++step) {
    change(net, static_cast<std::uint32_t>(20 * step));
    std::vector<double> expected = values_in(net);
    if (step % 3 == 0)
      for (std::size_t i = 0; i < slow.size(); ++i) {
        const double share = std::pow(0.9, 3) * std::pow(static_cast<double>(step) / steps, 3);
        expected[i] = slow[i] = share * slow[i] + (1 - share) * expected[i];
      }
    if (step == steps) expected = slow;
    lookahead.after_step(step, steps);
    const std::vector<double> found = values_in(net);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 2 * tolerance()) << i << " after step " << step;
  }
  EXPECT_EQ(values_in(net), values_in(lookahead));
}

TEST_P(LookaheadTest, SavedState_ContinuesWithTheSameBits) {
  Net one(dtype()), other(dtype());
  one.to(device());
  other.to(device());
  change(one, 1);
  Lookahead first(one, {.every = 2});
  change(one, 30);
  first.after_step(2, 8);
  Lookahead second(other, {.every = 2});
  second.load_state(first.state());
  for (std::uint32_t step = 3; step <= 8; ++step) {
    change(one, 40 * step);
    change(other, 40 * step);
    first.after_step(step, 8);
    second.after_step(step, 8);
  }
  EXPECT_EQ(values_in(other), values_in(one));
  change(one, 2);
  first.restart();
  EXPECT_EQ(values_in(first), values_in(one));
}

INSTANTIATE_TEST_SUITE_P(Devices, LookaheadTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(Lookahead, BadOptionsAndModules_AreErrors) {
  Linear layer(2, 3);
  EXPECT_EQ(error_text([&] { Lookahead(layer, {.every = 0}); }),
            "[lookahead] expected 1 or more steps between updates, got 0");
  EXPECT_EQ(error_text([&] { Lookahead(layer, {.decay = 1}); }),
            "[lookahead] expected a decay of 0 or more and less than 1, got 1");
  Lookahead lookahead(layer);
  layer = Linear(2, 4);
  EXPECT_EQ(error_text([&] { lookahead.update(0.5); }),
            "[lookahead] expected 'weight' as before, f32 [3, 2] on cpu, got 'weight', f32 [4, 2] on cpu");
}

}  // namespace
}  // namespace tandem
