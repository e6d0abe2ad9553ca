#include "tandem/optim/weight_average.h"

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/device/graph_runner.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/sequential.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// Parameters around the size of a chunk; buffers of f32 and i64.
class Net : public Module {
 public:
  explicit Net(DType dtype = DType::f32) {
    if (dtype != DType::f32) weight_ = ones({41, 25}, dtype), bias_ = ones({3}, dtype);
    add_parameter("weight", weight_);
    add_parameter("bias", bias_);
    add_buffer("mean", mean_);
    add_buffer("count", count_);
  }
  Tensor forward(const Tensor& x) override { return x; }

 private:
  Tensor weight_ = ones({41, 25}), bias_ = ones({3}), mean_ = zeros({5}), count_ = zeros({}, DType::i64);
};

// New values for all parameters and buffers.
void change(const Module& module, std::uint32_t seed) {
  for (const NamedTensors& list : {module.parameters(), module.buffers()})
    for (const auto& [name, tensor] : list)
      copy_into(tensor.detach(), random_tensor(tensor.shape(), tensor.dtype(), tensor.device(), ++seed));
}

std::vector<double> all_values(const NamedTensors& tensors) {
  std::vector<double> values;
  for (const auto& [name, tensor] : tensors)
    for (double value : values_of(tensor)) values.push_back(value);
  return values;
}

class WeightAverageTest : public OpTest {};

TEST_P(WeightAverageTest, Update_FollowsTheFormulaAndCopiesBuffers) {
  for (const double decay : {0.0, 0.5, 0.99}) {
    Net net(dtype());
    net.to(device());
    change(net, 1);
    std::vector<double> expected = all_values(net.parameters());
    WeightAverage average(net, decay);
    EXPECT_EQ(average.decay(), decay);
    for (std::uint32_t step = 1; step <= 4; ++step) {
      change(net, 10 * step);
      average.update();
      const std::vector<double> values = all_values(net.parameters());
      for (std::size_t i = 0; i < values.size(); ++i)
        expected[i] = decay * expected[i] + (1 - decay) * values[i];
    }
    NamedTensors parameters = average.state(), buffers{parameters[2], parameters[3]};
    parameters.resize(2);
    const std::vector<double> values = all_values(parameters);
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 2 * tolerance()) << i << " with decay " << decay;
    EXPECT_EQ(all_values(buffers), all_values(net.buffers()));
  }
}

TEST_P(WeightAverageTest, CopyTo_WritesAveragesAndLeavesTheSourceAlone) {
  Net net(dtype()), other(dtype());
  net.to(device());
  WeightAverage average(net, 0.9);
  change(net, 3);
  const std::vector<double> before = all_values(net.state_dict());
  average.update();
  const std::uint64_t revision = other.revision();
  average.copy_to(other);  // on the CPU, wherever the average is
  EXPECT_EQ(all_values(other.state_dict()), all_values(average.state()));
  EXPECT_GT(other.revision(), revision);
  EXPECT_EQ(all_values(net.state_dict()), before);
  EXPECT_NE(all_values(average.state()), before);
}

TEST_P(WeightAverageTest, SavedState_ContinuesWithTheSameBits) {
  Net net(dtype());
  net.to(device());
  WeightAverage first(net, 0.9);
  change(net, 1);
  first.update();
  WeightAverage second(net, 0.9);
  second.load_state(first.state());
  for (std::uint32_t step = 2; step < 5; ++step) {
    change(net, 10 * step);
    first.update();
    second.update();
  }
  EXPECT_EQ(all_values(second.state()), all_values(first.state()));
}

TEST_P(WeightAverageTest, CapturedGraph_FollowsTheWeights) {
  const Stream stream(device());
  const StreamScope scope(stream);
  Net net(dtype());
  net.to(device());
  WeightAverage replayed(net, 0.9), eager(net, 0.9);
  GraphRunner runner(device());
  for (std::uint32_t step = 1; step <= 5; ++step) {
    change(net, 10 * step);
    runner.run([&] { replayed.update(); });
    eager.update();
  }
  EXPECT_EQ(all_values(replayed.state()), all_values(eager.state()));
  EXPECT_EQ(runner.captured(), device().is_cuda());
}

TEST_P(WeightAverageTest, SteadyState_AllocatesNothing) {
  Net net(dtype());
  net.to(device());
  WeightAverage average(net, 0.9);
  average.update();
  const PoolStatistics before = pool_statistics(device());
  for (int i = 0; i < 10; ++i) average.update();
  const PoolStatistics after = pool_statistics(device());
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}

TEST_P(WeightAverageTest, SwapTwice_ExchangesAndRestores) {
  Net net(dtype());
  net.to(device());
  change(net, 1);
  const std::vector<double> averages = all_values(net.state_dict());
  WeightAverage average(net, 0.5);
  change(net, 50);
  const std::vector<double> own = all_values(net.state_dict());
  average.swap(net);
  EXPECT_EQ(all_values(net.state_dict()), averages);
  EXPECT_EQ(all_values(average.state()), own);
  average.swap(net);
  EXPECT_EQ(all_values(net.state_dict()), own);
  average.restart();
  EXPECT_EQ(all_values(average.state()), own);
}

INSTANTIATE_TEST_SUITE_P(Devices, WeightAverageTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(WeightAverage, AnyNumberOfThreads_GivesTheSameBits) {
  const auto run = [](int threads) {
    const ThreadLimit limit(threads);
    Linear layer(300, 200, {.random = {.seed = 3, .stream = 1}});
    WeightAverage average(layer, 0.9);
    change(layer, 1);
    average.update();
    return all_values(average.state());
  };
  EXPECT_EQ(run(1), run(2));
}

// The axes of convolution weights differ between memory and files.
TEST(WeightAverage, Convolutions_AreCopiedInTheSameAxisOrder) {
  const CnnOptions options{.classes = 4, .channels = 3, .width = 8};
  Cnn net(options), other(options);
  change(net, 5);
  const WeightAverage average(net, 0.9);
  average.copy_to(other);
  EXPECT_EQ(all_values(other.state_dict()), all_values(net.state_dict()));
}

TEST(WeightAverage, InvalidInput_IsAnError) {
  Net net;
  EXPECT_EQ(error_text([&] { WeightAverage(net, 1); }),
            "[weight_average] expected a decay of 0 or more and less than 1, got 1");
  EXPECT_EQ(error_text([&] { WeightAverage(net, std::nan("")); }),
            "[weight_average] expected a decay of 0 or more and less than 1, got nan");
  EXPECT_EQ(error_text([] { WeightAverage(Sequential(), 0.9); }),
            "[weight_average] expected a module with parameters, got none");
  WeightAverage average(net, 0.9);
  Linear other(2, 2);
  const std::vector<double> before = all_values(other.state_dict());
  EXPECT_EQ(
      error_text([&] { average.copy_to(other); }),
      "[weight_average] expected the 2 tensors of this model; unexpected: count, mean; different: weight "
      "(expected f32 [2, 2], got f32 [41, 25]), bias (expected f32 [2], got f32 [3])");
  EXPECT_EQ(all_values(other.state_dict()), before);
  EXPECT_THROW(average.load_state(other.state_dict()), Error);
}

TEST(WeightAverage, ReplacedLayer_IsAnErrorOnlyIfItsShapeChanged) {
  Linear layer(2, 2);
  WeightAverage average(layer, 0);
  layer = Linear(2, 2, {.random = {.seed = 9}});
  average.update();
  expect_values(average.state()[0].tensor, values_of(layer.weight()), 1e-6);
  layer = Linear(2, 3);
  EXPECT_EQ(
      error_text([&] { average.update(); }),
      "[weight_average] expected 'weight' as before, f32 [2, 2] on cpu, got 'weight', f32 [3, 2] on cpu");
}

}  // namespace
}  // namespace tandem
