// Training on the shards of a batch: the gradients must have the same bits whether one rank has all shards or
// several ranks share them. The ranks are threads here, which share a GPU.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/device/graph_runner.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/conv_norm.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/inverted_residual.h"
#include "tandem/nn/linear.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/flatten.h"
#include "tandem/ops/linear.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/random.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

constexpr std::int64_t classes = 10;

struct Setting {
  Device device;
  DType dtype = DType::f32;  // of images
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// Convolutions by im2col and Winograd, with bias and strided; batch norms of images and of rows; a parameter
// that is broadcast, one that is used twice, one that is transposed first; a frozen layer, a frozen norm and
// one that is folded into its convolution; a block of mobile networks.
struct Net : Module {
  DType dtype;
  ConvNorm stem{3, 5, {.window = {.padding = {1, 1}}}};
  Conv2d first{5, 16, {.window = {.padding = {1, 1}}}};
  Conv2d second{16, 16, {.window = {.padding = {1, 1}}, .bias = false}};
  Conv2d frozen{16, 16, {.kernel = {1, 1}}};
  Conv2d last{16, 24, {.window = {.stride = {2, 2}}}};
  BatchNorm first_norm{16}, second_norm{16}, frozen_norm{16}, row_norm{24};
  Linear shared{24, 24};
  Dropout dropout{0.4};
  detail::StreamCounter streams{7};
  detail::InvertedResidual mobile{{.in = 16,
                                   .expanded = 24,
                                   .out = 16,
                                   .kernel = 3,
                                   .stride = 1,
                                   .squeezed = 4,
                                   .activation = FusedActivation::silu,
                                   .squeeze_activation = Activation::silu,
                                   .gate = Activation::sigmoid,
                                   .drop_probability = 0.3},
                                  7,
                                  1,
                                  streams};
  Tensor scale = random_tensor({24}, DType::f32, cpu_device, 1, 0.5, 1.5);
  Tensor transposed = random_tensor({24, classes}, DType::f32, cpu_device, 2, -0.3, 0.3);

  explicit Net(const Setting& setting) : dtype(setting.dtype) {
    add_children({{"stem", stem.conv()},
                  {"stem_norm", stem.norm()},
                  {"first", first},
                  {"second", second},
                  {"frozen", frozen},
                  {"last", last},
                  {"mobile", mobile},
                  {"first_norm", first_norm},
                  {"second_norm", second_norm},
                  {"frozen_norm", frozen_norm},
                  {"row_norm", row_norm},
                  {"shared", shared},
                  {"dropout", dropout}});
    add_parameter("scale", scale);
    add_parameter("transposed", transposed);
    stem.conv().freeze();
    stem.norm().freeze();
    stem.norm().freeze_statistics();
    frozen.freeze();
    frozen_norm.freeze_statistics();
    to(setting.device);
  }

  Tensor forward(const Tensor& images) override {
    const Tensor features = stem.forward(cast(images, dtype), FusedActivation::relu);
    const Tensor x = max_pool2d(first_norm.forward(first(features), {}, FusedActivation::relu), {2, 2},
                                {.stride = {2, 2}});
    const Tensor y = frozen_norm.forward(frozen(second_norm.forward(second(x), x, FusedActivation::relu)), {},
                                         FusedActivation::relu);
    const Tensor rows = row_norm(cast(flatten(adaptive_avg_pool2d(last(mobile(y)), {1, 1})), DType::f32));
    const Tensor hidden = relu(shared(relu(shared(multiply(rows, scale)))));
    return linear(dropout(hidden), transposed.transpose(), {});
  }
};

struct Result {
  std::vector<std::string> names;
  std::vector<Tensor> gradients;  // of nodes of the tree, for the parameters that are not frozen
  std::vector<Tensor> buffers;
  Tensor outputs;
  double loss = 0;
};

struct Batch {
  Tensor images, labels;

  Batch(std::int64_t rows, Device device)
      : images(random_tensor({rows, 12, 12, 3}, DType::f32, device, 11)),
        labels(random_tensor({rows}, DType::i64, device, 12, 0, classes)) {}
};

// Two steps, so that the second one has other running statistics and masks.
Result run_step(Net& net, const Batch& batch, const ShardPart& part, MatmulPrecision precision) {
  const ShardScope scope(part);
  const MatmulPrecisionScope precision_scope(precision);
  const auto [begin, end] = rows_of_shards(part.rows, part.shards, part.own);
  Result result;
  for (int step = 0; step < 2; ++step) {
    net.zero_grad();
    result.outputs = net(batch.images.slice(0, begin, end));
    const Tensor loss = cross_entropy(result.outputs, batch.labels.slice(0, begin, end), 0.1);
    backward(loss);
    result.loss = loss.item<float>();
  }
  for (const auto& [name, parameter] : net.parameters())
    if (parameter.requires_grad()) {
      result.names.push_back(name);
      result.gradients.push_back(parameter.grad());
    }
  for (const auto& [name, buffer] : net.buffers()) result.buffers.push_back(buffer);
  return result;
}

Result run_solo(const Setting& setting, const Batch& batch, std::int64_t shards, ShardNorm norm) {
  manual_seed(5);
  Net net(setting);
  return run_step(net, batch,
                  {.shards = shards, .own = {0, shards}, .rows = batch.labels.size(0), .norm = norm},
                  setting.precision);
}

// Gathers the values of all ranks in shared memory.
class Exchange {
 public:
  Exchange(std::int64_t ranks, std::int64_t shards) : barrier_(ranks), shards_(shards) {}

  void gather(IndexRange own, const Tensor& mine, Tensor& all) {
    const std::size_t piece = static_cast<std::size_t>(all.numel() / shards_) * size_of(all.dtype());
    const Tensor host = mine.cpu(), gathered = Tensor::empty(all.shape(), all.dtype());
    {
      const std::lock_guard lock(mutex_);
      memory_.resize(piece * static_cast<std::size_t>(shards_));
      std::memcpy(memory_.data() + piece * static_cast<std::size_t>(own.begin), host.bytes(),
                  piece * static_cast<std::size_t>(own.count()));
    }
    barrier_.arrive_and_wait();
    std::memcpy(gathered.bytes(), memory_.data(), memory_.size());
    barrier_.arrive_and_wait();
    copy_into(all, gathered.to(all.device()));
  }
  void leave() { barrier_.arrive_and_drop(); }

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::vector<std::byte> memory_;
  std::int64_t shards_;
};

std::vector<Result> run_ranks(const Setting& setting, const Batch& batch, std::int64_t shards,
                              std::int64_t ranks, ShardNorm norm) {
  Exchange exchange(ranks, shards);
  std::vector<Result> results(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<Net>> nets;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    manual_seed(5);
    nets.push_back(std::make_unique<Net>(setting));
  }
  std::vector<std::jthread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const ThreadLimit limit(rank % 2 == 0 ? 1 : 2);
      const IndexRange own = part_of(shards, ranks, rank);
      const auto i = static_cast<std::size_t>(rank);
      try {
        results[i] =
            run_step(*nets[i], batch,
                     {.shards = shards,
                      .own = own,
                      .rows = batch.labels.size(0),
                      .norm = norm,
                      .gather = [&](const Tensor& mine, Tensor& all) { exchange.gather(own, mine, all); }},
                     setting.precision);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
        exchange.leave();
      }
    });
  threads.clear();
  return results;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor dense_a = a.contiguous().cpu(), dense_b = b.contiguous().cpu();
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.numel() == 0 || std::memcmp(dense_a.bytes(), dense_b.bytes(),
                                        static_cast<std::size_t>(a.numel()) * size_of(a.dtype())) == 0);
}

// The sum over all ranks of the gradient of one parameter.
Tensor join_ranks(const std::vector<Result>& results, std::size_t parameter, std::int64_t shards) {
  std::vector<IndexRange> nodes;
  std::vector<Tensor> sums;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const auto own =
        part_of(shards, static_cast<std::int64_t>(results.size()), static_cast<std::int64_t>(rank));
    const auto cover = tree_cover(shards, own);
    const Tensor gradient = results[rank].gradients[parameter].contiguous();
    for (std::size_t i = 0; i < cover.size(); ++i) {
      nodes.push_back(cover[i]);
      sums.push_back(cover.size() == 1 ? gradient : gradient[static_cast<std::int64_t>(i)]);
    }
  }
  return sum_tree(shards, {0, shards}, nodes, sums);
}

struct ShardCase {
  Setting setting;
  std::int64_t shards, ranks, rows;
  ShardNorm norm;
};

class ShardedTraining : public testing::TestWithParam<ShardCase> {};

TEST_P(ShardedTraining, AnyNumberOfRanks_GivesTheSameBits) {
  const auto [setting, shards, ranks, rows, norm] = GetParam();
  const Batch batch(rows, setting.device);
  const Result solo = run_solo(setting, batch, shards, norm);
  const std::vector<Result> parts = run_ranks(setting, batch, shards, ranks, norm);
  ASSERT_FALSE(HasFailure());
  for (std::size_t i = 0; i < solo.gradients.size(); ++i) {
    ASSERT_TRUE(solo.gradients[i].defined()) << solo.names[i];
    EXPECT_TRUE(same_bits(join_ranks(parts, i, shards), solo.gradients[i])) << solo.names[i];
  }
  double loss = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Result& part = parts[static_cast<std::size_t>(rank)];
    const auto [begin, end] = rows_of_shards(rows, shards, part_of(shards, ranks, rank));
    EXPECT_TRUE(same_bits(part.outputs, solo.outputs.slice(0, begin, end))) << "outputs of rank " << rank;
    for (std::size_t i = 0; i < solo.buffers.size(); ++i)
      EXPECT_TRUE(same_bits(part.buffers[i], solo.buffers[i])) << "buffer " << i << " of rank " << rank;
    loss += part.loss;
  }
  EXPECT_NEAR(loss, solo.loss, 1e-5);
}

class Shards : public testing::TestWithParam<Device> {
 protected:
  Setting setting{GetParam()};
  Batch batch{30, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, Shards, testing::ValuesIn(test_devices()), device_name);

TEST_P(Shards, SeveralShards_AreWithinRoundingOfOne) {
  // Rounding in f32, enlarged by the norms' subtractions; tests/ops/shard_scope_test.cpp compares in f64. A
  // GPU has other kernels for a shard than for the batch.
  const double tolerance = setting.device.is_cuda() ? 5e-5 : 5e-6;
  const Result one = run_solo(setting, batch, 1, ShardNorm::batch);
  for (const std::int64_t shards : {2, 4, 8}) {
    const Result several = run_solo(setting, batch, shards, ShardNorm::batch);
    EXPECT_NEAR(several.loss, one.loss, tolerance);
    double max_gradient = 0, max_difference = 0;
    for (std::size_t i = 0; i < one.gradients.size(); ++i) {
      const auto expected = values_of(one.gradients[i]), actual = values_of(several.gradients[i]);
      ASSERT_EQ(actual.size(), expected.size()) << one.names[i];
      for (std::size_t k = 0; k < actual.size(); ++k) {
        max_gradient = std::max(max_gradient, std::abs(expected[k]));
        max_difference = std::max(max_difference, std::abs(actual[k] - expected[k]));
      }
    }
    EXPECT_LE(max_difference, tolerance * max_gradient) << shards << " shards";
  }
}

TEST_P(Shards, OneShard_HasTheBitsOfNoScope) {
  manual_seed(5);
  Net net(setting);
  for (int step = 0; step < 2; ++step) {
    net.zero_grad();
    backward(cross_entropy(net(batch.images), batch.labels, 0.1));
  }
  const Result one = run_solo(setting, batch, 1, ShardNorm::batch);
  std::size_t i = 0;
  for (const auto& [name, parameter] : net.parameters())
    if (parameter.requires_grad()) {
      EXPECT_TRUE(same_bits(parameter.grad(), one.gradients[i++])) << name;
    }
}

// What a GPU launches for a step can be captured: later steps replay it.
TEST_P(Shards, StepsOfAGraph_HaveTheBitsOfSeparateOnes) {
  constexpr int steps = 5;
  const ShardPart part{.shards = 4, .own = {0, 4}, .rows = 30};
  const auto train = [&](const std::function<void(const std::function<void()>&)>& run) {
    manual_seed(5);
    Net net(setting);
    std::vector<Tensor> results;
    for (const auto& [name, parameter] : net.parameters())
      results.push_back(zeros(parameter.shape(), parameter.dtype(), setting.device));
    for (int step = 0; step < steps; ++step)
      run([&] {
        const ShardScope scope(part);
        net.zero_grad();
        backward(cross_entropy(net(batch.images), batch.labels));
        std::size_t i = 0;
        for (const auto& [name, parameter] : net.parameters())
          if (const Tensor& result = results[i++]; parameter.requires_grad())
            copy_into(result, parameter.grad());
        net.zero_grad();
      });
    for (const auto& [name, buffer] : net.buffers()) results.push_back(buffer);
    return results;
  };
  GraphRunner runner(setting.device);
  const std::vector<Tensor> separate = train([](const auto& step) { step(); });
  const std::vector<Tensor> replayed = train([&](const auto& step) { runner.run(step); });
  EXPECT_EQ(runner.captured(), setting.device.is_cuda());
  for (std::size_t i = 0; i < separate.size(); ++i) EXPECT_TRUE(same_bits(replayed[i], separate[i])) << i;
}

std::vector<ShardCase> shard_cases() {
  std::vector<ShardCase> cases;
  for (const Device device : test_devices()) {
    const Setting plain{device};
    for (const ShardNorm norm : {ShardNorm::batch, ShardNorm::shard})
      for (const std::int64_t shards : {1, 4, 8})
        for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(shards, 4); ++ranks)
          cases.push_back({plain, shards, ranks, 30, norm});
    cases.push_back({plain, 8, 8, 32, ShardNorm::batch});
    cases.push_back({plain, 5, 3, 9, ShardNorm::batch});
    cases.push_back({plain, 8, 4, 3, ShardNorm::batch});  // fewer rows than shards: ranks without rows
    cases.push_back({plain, 4, 3, 5, ShardNorm::batch});  // a rank with one row
    for (const ShardNorm norm : {ShardNorm::batch, ShardNorm::shard}) {
      cases.push_back({{device, DType::bf16}, 8, 3, 30, norm});
      if (device.is_cuda()) cases.push_back({{device, DType::f32, MatmulPrecision::tf32}, 8, 3, 30, norm});
    }
  }
  return cases;
}

std::string shard_case_name(const testing::TestParamInfo<ShardCase>& info) {
  const auto [setting, shards, ranks, rows, norm] = info.param;
  return std::string(setting.device.is_cuda() ? "cuda_" : "cpu_") + std::string(name_of(setting.dtype)) +
         (setting.precision == MatmulPrecision::tf32 ? "_tf32_" : "_") + std::to_string(shards) + "_shards_" +
         std::to_string(ranks) + "_ranks_" + std::to_string(rows) + "_rows_norm_over_" +
         (norm == ShardNorm::batch ? "batch" : "shard");
}

INSTANTIATE_TEST_SUITE_P(Shards, ShardedTraining, testing::ValuesIn(shard_cases()), shard_case_name);

}  // namespace
}  // namespace tandem
