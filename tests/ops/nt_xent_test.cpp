#include "tandem/ops/nt_xent.h"

#include <algorithm>
#include <array>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/device/graph_runner.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

struct Expected {
  double loss = 0, accuracy = 0;
};

// The definition, row by row in f64.
Expected by_definition(const Tensor& embeddings, double temperature) {
  std::vector<double> z = values_of(embeddings);
  const auto rows = static_cast<std::size_t>(embeddings.size(0)), columns = z.size() / rows;
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += z[a * columns + i] * z[b * columns + i];
    return sum;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const double norm = std::sqrt(dot(row, row));
    for (std::size_t i = 0; i < columns && norm > 0; ++i) z[row * columns + i] /= norm;
  }
  Expected expected;
  for (std::size_t row = 0; row < rows; ++row) {
    const double to_partner = dot(row, (row + rows / 2) % rows);
    double others_max = -2, sum = 0;
    for (std::size_t other = 0; other < rows; ++other) {
      if (other == row) continue;
      sum += std::exp((dot(row, other) - to_partner) / temperature);
      if (other != (row + rows / 2) % rows) others_max = std::max(others_max, dot(row, other));
    }
    expected.loss += std::log(sum) / static_cast<double>(rows);
    expected.accuracy += (to_partner > others_max ? 1.0 : 0.0) / static_cast<double>(rows);
  }
  return expected;
}

// Two noisy views of each of `pairs` vectors.
Tensor views(std::int64_t pairs, std::int64_t columns, DType dtype, Device device, std::uint32_t seed) {
  std::vector<double> values = values_of(random_tensor({2 * pairs, columns}, DType::f64, cpu_device, seed));
  const std::size_t half = values.size() / 2;
  for (std::size_t i = 0; i < half; ++i) values[half + i] = values[i] + 0.7 * values[half + i];
  return tensor_of(values, {2 * pairs, columns}, dtype, device);
}

class NtXentTest : public OpTest {};

// Numbers of rows around the sizes of vectors, blocks and warps.
TEST_P(NtXentTest, AnyShape_MatchesDefinition) {
  std::uint32_t seed = 0;
  for (const auto& [pairs, columns] : {std::array{2, 1},
                                       {2, 7},
                                       {3, 4},
                                       {8, 16},
                                       {16, 33},
                                       {17, 128},
                                       {127, 5},
                                       {128, 8},
                                       {129, 3},
                                       {600, 32}}) {
    SCOPED_TRACE(testing::Message() << 2 * pairs << " x " << columns);
    const Tensor x = views(pairs, columns, dtype(), device(), ++seed);
    const Expected expected = by_definition(x, 0.5);
    const NtXentResult result = nt_xent_with_accuracy(x, {.temperature = 0.5});
    EXPECT_EQ(result.loss.shape(), Shape());
    EXPECT_EQ(result.loss.dtype(), dtype());
    EXPECT_EQ(result.retrieval_accuracy.shape(), Shape());
    expect_values(result.loss, {expected.loss}, tolerance());
    if (columns > 1)  // similarities of scalars are tied
      expect_values(result.retrieval_accuracy, {expected.accuracy}, tolerance());
  }
  const Tensor wide = views(3, 6, dtype(), device(), 7);
  expect_values(nt_xent(wide.transpose()), {by_definition(wide.transpose(), 0.2).loss}, tolerance());
}

TEST_P(NtXentTest, MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("nt_xent", "contrastive")) {
    const double temperature = one.params.at("temperature");
    // The similarities of bf16 embeddings have errors of about 2⁻⁸.
    if (dtype() == DType::bf16 && temperature < 0.2) continue;
    const double expected_tolerance =
        dtype() == DType::bf16 ? 5 * tolerance() : tolerance() * std::max(1.0, 0.1 / temperature);
    const NtXentOptions options{.temperature = temperature};
    expect_golden(one, {"x"}, dtype(), device(), expected_tolerance,
                  [&](const std::vector<Tensor>& in) { return nt_xent(in[0], options); });
    if (dtype() == DType::bf16 || one.array("x").shape[1] == 1) continue;
    const NtXentResult result = nt_xent_with_accuracy(golden_tensor(one, "x", dtype(), device()), options);
    expect_values(result.retrieval_accuracy, one.array("accuracy").values<double>(), 1e-6);
  }
}

TEST_P(NtXentTest, SmallTemperatures_GiveFiniteLossesAndGradients) {
  for (const double temperature : {0.01, 1e-4, 1e-6}) {
    Tensor x = views(5, 8, dtype(), device(), 3).set_requires_grad();
    const Tensor loss = nt_xent(x, {.temperature = temperature});
    const double expected = by_definition(x, 0.01).loss;
    if (temperature == 0.01 && dtype() != DType::bf16) expect_values(loss, {expected}, 100 * tolerance());
    backward(loss);
    for (const double value : values_of(x.grad())) ASSERT_TRUE(std::isfinite(value)) << temperature;
    EXPECT_TRUE(std::isfinite(values_of(loss)[0])) << temperature;
  }
}

TEST_P(NtXentTest, EqualRows_AreNotRetrieved) {
  Tensor x = tensor_of(std::vector<double>(8 * 3, 0.5), {8, 3}, dtype(), device()).set_requires_grad();
  const NtXentResult result = nt_xent_with_accuracy(x);
  expect_values(result.loss, {std::log(7.0)}, tolerance());
  expect_values(result.retrieval_accuracy, {0}, 0);
  backward(result.loss);
  expect_values(x.grad(), std::vector<double>(24, 0), tolerance());
}

TEST_P(NtXentTest, ZeroRowHasNoGradient_NanRowMakesTheLossNan) {
  std::vector<double> values = values_of(views(3, 4, DType::f64, cpu_device, 5));
  std::fill_n(values.begin() + 4, 4, 0.0);
  Tensor x = tensor_of(values, {6, 4}, dtype(), device()).set_requires_grad();
  const Tensor loss = nt_xent(x, {.temperature = 0.5});
  expect_values(loss, {by_definition(x, 0.5).loss}, tolerance());
  backward(loss);
  expect_values(x.grad().slice(0, 1, 2), {0, 0, 0, 0}, 0);
  EXPECT_NE(values_of(x.grad())[0], 0);
  values[9] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(values_of(nt_xent(tensor_of(values, {6, 4}, dtype(), device())))[0]));
}

TEST_P(NtXentTest, SecondRun_GivesTheSameBits) {
  const auto run = [&] {
    Tensor x = views(300, 24, dtype(), device(), 9).set_requires_grad();
    const Tensor loss = nt_xent(x);
    backward(loss);
    std::vector<double> all = values_of(x.grad());
    all.push_back(values_of(loss)[0]);
    return all;
  };
  EXPECT_EQ(run(), run());
}

TEST_P(NtXentTest, SteadyState_AllocatesNothing) {
  if (!device().is_cuda()) GTEST_SKIP() << "on the CPU, any thread may be the next one to need memory";
  const Tensor x = views(64, 16, dtype(), device(), 2).set_requires_grad();
  nt_xent(x);
  const PoolStatistics before = pool_statistics(device());
  for (int i = 0; i < 5; ++i) nt_xent(x);
  const PoolStatistics after = pool_statistics(device());
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}

INSTANTIATE_TEST_SUITE_P(Devices, NtXentTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class NtXentGradient : public testing::TestWithParam<Device> {};

TEST_P(NtXentGradient, MatchesCentralDifferences) {
  for (const double temperature : {0.1, 0.5, 2.0})
    for (const auto& [pairs, columns] : {std::array{2, 2}, {2, 5}, {3, 4}, {9, 3}})
      expect_gradients([&](const auto& in) { return nt_xent(in[0], {.temperature = temperature}); },
                       {views(pairs, columns, DType::f64, GetParam(), 3)});
}

TEST_P(NtXentGradient, CapturedGraph_FollowsNewEmbeddings) {
  const Device device = GetParam();
  const Stream stream(device);
  const StreamScope scope(stream);
  Tensor x = views(64, 32, DType::f32, device, 1).set_requires_grad();
  const Tensor loss = Tensor::empty({}, DType::f32, device);
  const Tensor gradient = Tensor::empty(x.shape(), DType::f32, device);
  GraphRunner runner(device);
  for (std::uint32_t step = 1; step <= 5; ++step) {
    const Tensor next = views(64, 32, DType::f32, device, step);
    copy_into(x.detach(), next);
    runner.run([&] {
      const Tensor value = nt_xent(x);
      backward(value);
      copy_into(loss, value.detach());
      copy_into(gradient, x.grad());
      x.set_grad(Tensor());
    });
    Tensor again = next.clone().set_requires_grad();
    const Tensor expected = nt_xent(again);
    backward(expected);
    expect_values(loss, values_of(expected), 1e-6);
    expect_values(gradient, values_of(again.grad()), 1e-6);
  }
  EXPECT_EQ(runner.captured(), device.is_cuda());
}

INSTANTIATE_TEST_SUITE_P(Devices, NtXentGradient, testing::ValuesIn(test_devices()), device_name);

TEST(NtXent, AnyNumberOfThreads_GivesTheSameBits) {
  const auto run = [](int threads) {
    const ThreadLimit limit(threads);
    Tensor x = views(150, 20, DType::f32, cpu_device, 4).set_requires_grad();
    backward(nt_xent(x));
    return values_of(x.grad());
  };
  EXPECT_EQ(run(1), run(2));
}

TEST(NtXent, InvalidInput_IsAnError) {
  const auto error_of = [](const Shape& shape, double temperature = 0.2, DType dtype = DType::f32) {
    return error_text(
        [&] { nt_xent(random_tensor(shape, dtype, cpu_device, 1), {.temperature = temperature}); });
  };
  EXPECT_EQ(error_of({5, 2}), "[nt_xent] expected an even number of rows, two views of each image, got 5");
  EXPECT_EQ(error_of({2, 2}), "[nt_xent] expected at least 2 pairs of rows, got 1");
  EXPECT_EQ(error_of({0, 2}), "[nt_xent] expected at least 2 pairs of rows, got 0");
  EXPECT_EQ(error_of({4}), "[nt_xent] expected embeddings (2n, d), got [4]");
  EXPECT_EQ(error_of({4, 2}, 0), "[nt_xent] expected a finite temperature of at least 1e-06, got 0");
  EXPECT_EQ(error_of({4, 2}, -1), "[nt_xent] expected a finite temperature of at least 1e-06, got -1");
  EXPECT_EQ(error_of({4, 2}, 0.2, DType::i32), "[nt_xent] expected embeddings of a floating dtype, got i32");
  const ShardScope scope({.shards = 2, .own = {0, 1}, .rows = 8});
  EXPECT_EQ(error_of({4, 2}),
            "[nt_xent] expected a whole batch, since every row is compared with all others, got a part of 2 "
            "shards");
}

}  // namespace
}  // namespace tandem
