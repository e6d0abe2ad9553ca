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
    options.model = "mobilenet_v3_small";  // a sixth of the bytes of ResNet-18, which every run saves
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
      {"batch_norm", true, [](TrainOptions& o) { o.model = "resnet18"; }},
      {"mobile", true, [](TrainOptions&) {}},
      {"shard_norm", true,
       [](TrainOptions& o) {  // which needs two rows per shard
         o.batch_norm = ShardNorm::shard;
         o.batch_size = 20;
         o.batches_per_epoch = 2;
       }},
      {"mixup", true, [](TrainOptions& o) { o.mixup = 0.4; }},
      {"frozen", true, [](TrainOptions& o) { o.freeze = true; }},
      {"clipped_average", true,
       [](TrainOptions& o) {
         o.clip_norm = 0.5;
         o.ema = 0.9;
       }},
      {"class_weights", true,
       [](TrainOptions& o) {
         o.class_weights.balanced = true;
         o.balanced_sampling = true;
         o.label_smoothing = 0.1;
       }},
      {"fitted_head", true,
       [](TrainOptions& o) {
         o.model = "resnet18";
         o.fit_head = true;
         o.epochs = 2;
       }},
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

  void expect_same_run(const std::string& a, const std::string& b) const {
    expect_same_weights(runs_ / a, runs_ / b);
    EXPECT_EQ(log_without_times(RunFolder{runs_ / a}.log()), log_without_times(RunFolder{runs_ / b}.log()))
        << b;
    EXPECT_EQ(read_bytes(RunFolder{runs_ / a}.best()), read_bytes(RunFolder{runs_ / b}.best())) << b;
  }

  TempFolder data_, runs_;
  TrainOptions options_;
};

TEST_P(RankBits, RanksThreadsAndWorkers_DoNotMatter) {
  options_.run_folder = runs_ / "alone";
  set_thread_count(2);
  train(options_);
  for (const int ranks : {2, 3, 8}) {
    if (ranks == 8 && GetParam().photographs) continue;  // eight copies of such a network take long
    const std::string name = std::to_string(ranks);
    train_on(ranks, ranks == 2 ? 2 : 0, ranks == 3 ? 2 : 1, name);
    expect_same_run("alone", name);
    if (HasFailure()) return;
  }
}

TEST_P(RankBits, Passes_DoNotMatter) {
  options_.batch_norm = ShardNorm::shard;  // which needs two rows per shard
  if (GetParam().photographs) {
    options_.batch_size = 20;
    options_.batches_per_epoch = 2;
  }
  options_.run_folder = runs_ / "at once";
  train(options_);
  options_.accumulate = 3;
  options_.run_folder = runs_ / "alone";
  train(options_);
  expect_same_run("at once", "alone");
  train_on(2, 0, 1, "ranks");
  expect_same_run("at once", "ranks");
}

TEST(Passes, BatchNormsOverTheBatch_AreRefused) {
  const TempFolder data, runs;
  write_photos(data.path(), 14);
  TrainOptions options = options_for({"", true, [](TrainOptions&) {}}, data.path());
  options.run_folder = runs / "run";
  const auto error_of = [&] {
    try {
      train(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  options.accumulate = 2;
  EXPECT_EQ(
      error_of(),
      "[train] expected batch norms over shards with 2 passes per batch, got batch norms over the whole "
      "batch, whose images are not there at the same time");
  options.batch_norm = ShardNorm::shard;
  options.accumulate = 9;
  options.run_folder = runs / "another";
  EXPECT_EQ(error_of(), "[train] expected at least 9 shards for 9 passes on each of 1 ranks, got 8");
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
