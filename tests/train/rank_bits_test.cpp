// The bits of a run depend on the number of shards, not on the ranks that share them, nor on threads and
// workers. Ranks are threads of the test here; tests/apps/rank_command_test.cpp starts processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/parallel.h"
#include "tandem/train/trainer.h"
#include "tests/dist/rank_threads.h"
#include "tests/train/log_lines.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

struct RankCase {
  std::string name;
  bool photographs;
  std::function<void(TrainOptions&)> change;
};

TrainOptions options_for(const RankCase& one, const std::filesystem::path& data) {
  TrainOptions options;
  options.data = data.string();
  options.shards = 8;
  options.batch_size = 21;  // shards of two and three rows, and a remainder
  options.epochs = 2;
  options.device = cpu_device;
  options.workers = 0;
  options.momentum = 0.9;
  if (one.photographs) {
    options.model = "resnet18";
    options.image_size = 32;
    options.batch_size = 10;
    options.epochs = 1;
    options.learning_rate = 0.01;
    options.transform = Transform::parse("crop 0.5 1, flip", 1);
  } else {
    options.layers = {784, 24, 10};
    options.limit = 130;
  }
  one.change(options);
  return options;
}

std::vector<RankCase> rank_cases() {
  return {
      {"perceptron", false, [](TrainOptions& o) { o.transform = Transform::parse("rotate -10 10"); }},
      {"perceptron_adam", false,
       [](TrainOptions& o) {
         o.optimizer = "adam";
         o.momentum = 0;
         o.learning_rate = 0.01;
       }},
      {"dropout", false, [](TrainOptions& o) { o.dropout = 0.4; }},
      {"cnn", false,
       [](TrainOptions& o) {
         o.model = "cnn";
         o.limit = 60;
         o.epochs = 1;
       }},
      {"batch_norm", true, [](TrainOptions&) {}},
      {"shard_norm", true,
       [](TrainOptions& o) {  // which needs two rows per shard
         o.batch_norm = ShardNorm::shard;
         o.batch_size = 20;
         o.batches_per_epoch = 2;
       }},
      {"mixup", true, [](TrainOptions& o) { o.mixup = 0.4; }},
      {"frozen", true, [](TrainOptions& o) { o.freeze = true; }},
  };
}

class RankBits : public testing::TestWithParam<RankCase> {
 protected:
  RankBits() {
    if (GetParam().photographs)
      write_photos(data_.path(), 14);
    else
      write_small_digits(data_.path());
    options_ = options_for(GetParam(), data_.path());
  }

  // Trains on so many ranks, with workers and threads per rank, into a folder.
  void train_on(int ranks, int workers, int threads, const std::string& name) {
    set_thread_count(threads);
    TrainOptions options = options_;
    options.workers = workers;
    options.run_folder = runs_ / name;
    const auto errors = on_ranks(ranks, over_shared_memory(), [&](Group& group) { train(options, group); });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    set_thread_count(usable_cpus());
  }

  TempFolder data_, runs_;
  TrainOptions options_;
};

TEST_P(RankBits, RanksThreadsAndWorkers_DoNotMatter) {
  options_.run_folder = runs_ / "alone";
  set_thread_count(2);
  train(options_);
  for (const int ranks : {2, 3, 8}) {
    if (ranks == 8 && GetParam().photographs) continue;  // eight copies of a ResNet take long
    const std::string name = std::to_string(ranks);
    train_on(ranks, ranks == 2 ? 2 : 0, ranks == 3 ? 2 : 1, name);
    if (HasFailure()) return;
    expect_same_weights(runs_ / "alone", runs_ / name);
    EXPECT_EQ(log_without_times(RunFolder{runs_ / "alone"}.log()),
              log_without_times(RunFolder{runs_ / name}.log()))
        << ranks;
    EXPECT_EQ(read_bytes(RunFolder{runs_ / "alone"}.best()), read_bytes(RunFolder{runs_ / name}.best()))
        << ranks;
  }
}

// After twenty steps, relative to the largest weight of a tensor. Not for a network with ReLU: an activation
// that rounding moves across 0 changes the next gradients by far more, as another SIMD level does too.
TEST(Shards, OneAndSeveral_DifferByRoundingOnly) {
  const TempFolder data, runs;
  write_small_digits(data.path());
  TrainOptions options;
  options.data = data.path().string();
  options.layers = {784, 24, 10};
  options.batch_size = 16;
  options.batches_per_epoch = 20;
  options.epochs = 1;
  options.device = cpu_device;
  options.workers = 0;
  std::vector<TensorFile> results;
  for (const std::int64_t shards : {1, 8}) {
    options.shards = shards;
    options.run_folder = runs / std::to_string(shards);
    train(options);
    results.push_back(read_safetensors(RunFolder{options.run_folder}.best()));
  }
  for (std::size_t i = 0; i < results[0].tensors.size(); ++i) {
    const auto& [name, tensor] = results[0].tensors[i];
    const auto one = tensor.to_vector<float>(), several = results[1].tensors[i].tensor.to_vector<float>();
    float largest = 0, difference = 0;
    for (std::size_t k = 0; k < one.size(); ++k) {
      largest = std::max(largest, std::abs(one[k]));
      difference = std::max(difference, std::abs(one[k] - several[k]));
    }
    EXPECT_LE(difference, 2e-6f * largest) << name;
    EXPECT_GT(difference, 0) << name;  // the shards were used
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, RankBits, testing::ValuesIn(rank_cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tandem
