#include "tandem/train/run_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tandem/device/buffer.h"
#include "tests/core/sanitized.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() { std::filesystem::current_path(folder_.path()); }
  ~RunFolderTest() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_ = std::filesystem::current_path();
  TempFolder folder_;
};

TEST_F(RunFolderTest, EmptyPath_IsNumbered) {
  EXPECT_EQ(make_run_folder("", "mnist", "mlp").path, "runs/mnist-mlp-1");
  EXPECT_EQ(make_run_folder("", "mnist", "mlp").path, "runs/mnist-mlp-2");
  EXPECT_EQ(make_run_folder("", "digits", "mlp").path, "runs/digits-mlp-1");
  EXPECT_EQ(make_run_folder("a/b", "mnist", "mlp").path, "a/b");
  EXPECT_TRUE(std::filesystem::is_directory("a/b"));
  put_bytes("file", "x");
  EXPECT_EQ(error_text([] { make_run_folder("file/run", "mnist", "mlp"); }),
            "[train] cannot create the folder file/run: Not a directory");
}

TEST_F(RunFolderTest, TemporaryFiles_AreRemoved) {
  const RunFolder folder = make_run_folder("run", "", "");
  for (const char* name : {"run/.tandem-17-0.tmp", "run/last.ckpt", "run/notes.tmp"}) put_bytes(name, "x");
  remove_temporary_files(folder);
  EXPECT_FALSE(std::filesystem::exists("run/.tandem-17-0.tmp"));
  EXPECT_TRUE(std::filesystem::exists("run/last.ckpt"));
  EXPECT_TRUE(std::filesystem::exists("run/notes.tmp"));
}

// Every save of a long training has more epochs; the pool must not keep a block for each.
TEST_F(RunFolderTest, MoreAndMoreEpochs_PoolDoesNotGrow) {
  if (address_sanitized) GTEST_SKIP() << "the pool keeps no blocks with AddressSanitizer";
  const TrainOptions options{.layers = {784, 5, 10}};
  const TomlTable config = to_table(options);
  const ImageSet images = make_digits(64, 2);
  const RunFolder folder = make_run_folder("run", "", "");
  TrainingState state(options, images, cpu_device);
  RunPosition position;
  save_checkpoint(folder, config, state, position);
  const PoolStatistics before = pool_statistics(cpu_device);
  for (int epoch = 1; epoch <= 3000; ++epoch) {
    position.records.push_back({.epoch = epoch});
    if (epoch % 300 == 0) save_checkpoint(folder, config, state, position);
  }
  EXPECT_EQ(pool_statistics(cpu_device).system_allocations, before.system_allocations);
}

// A run that is killed while it writes its first file.
TEST_F(RunFolderTest, TemporaryFileOnly_IsAnUnusedFolder) {
  const RunFolder folder = make_run_folder("run", "", "");
  put_bytes("run/.lock", "");
  put_bytes("run/.tandem-17-0.tmp", "x");
  check_run_folder("run", false);
  EXPECT_FALSE(std::filesystem::exists("run/.tandem-17-0.tmp"));
  put_bytes("run/notes", "x");
  EXPECT_NE(error_text([] { check_run_folder("run", false); }), "");
}

TEST_F(RunFolderTest, Checkpoint_RoundTripsBitForBit) {
  TrainOptions options{.layers = {784, 5, 10}, .dropout = 0.5};
  options.momentum = 0.9;
  const TomlTable config = to_table(options);
  const ImageSet images = make_digits(64, 2);
  const RunFolder folder = make_run_folder("run", "", "");
  TrainingState state(options, images, cpu_device);
  EXPECT_FALSE(load_checkpoint(folder, config, state));
  RunPosition position{.epoch = 0, .step = 3, .sums = {.loss = 0.1 + 0.2, .correct = 5, .samples = 48}};
  for (const std::int64_t epochs : {0, 2}) {
    position.epoch = epochs;
    for (int i = 1; i <= epochs; ++i)
      position.records.push_back({.epoch = i, .train_loss = 1.0 / 3, .val_accuracy = i == 1 ? 0.75 : 0.5});
    state.engine().run(epochs, 0, 3);
    state.engine().store();
    save_checkpoint(folder, config, state, position);
    TrainingState loaded(options, images, cpu_device);
    const auto found = load_checkpoint(folder, config, loaded);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->epoch, epochs);
    EXPECT_EQ(found->step, 3);
    EXPECT_EQ(found->sums.loss, 0.1 + 0.2);
    EXPECT_EQ(found->sums.correct, 5);
    EXPECT_EQ(found->sums.samples, 48);
    ASSERT_EQ(found->records.size(), static_cast<std::size_t>(epochs));
    for (const EpochRecord& record : found->records) {
      EXPECT_EQ(record.train_loss, 1.0 / 3);
      EXPECT_TRUE(std::isnan(record.val_loss));
    }
    EXPECT_EQ(loaded.optimizer().step_count(), state.optimizer().step_count());
    loaded.engine().run(epochs, 3, 1);
    loaded.engine().store();
    TrainingState again(options, images, cpu_device);
    load_checkpoint(folder, config, again);
    again.engine().run(epochs, 3, 1);
    again.engine().store();
    for (const char* name : {"again", "loaded"}) std::filesystem::create_directories(name);
    save_checkpoint({"again"}, config, again, position);
    save_checkpoint({"loaded"}, config, loaded, position);
    EXPECT_EQ(get_bytes("again/last.ckpt"), get_bytes("loaded/last.ckpt"));
  }
  EXPECT_EQ(position.best()->epoch, 1);
}

TEST_F(RunFolderTest, NonFiniteState_IsDetected) {
  TrainOptions options{.layers = {784, 5, 10}};
  options.momentum = 0.9;
  TrainingState state(options, make_digits(64, 2), cpu_device);
  EXPECT_TRUE(is_finite(state));
  const Tensor momentum = state.optimizer().state().front().tensor;
  momentum.data<float>()[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(is_finite(state));
  momentum.data<float>()[7] = 0;
  EXPECT_TRUE(is_finite(state));
  state.model().state_dict().back().tensor.data<float>()[0] = std::nanf("");
  EXPECT_FALSE(is_finite(state));
}

}  // namespace
}  // namespace tandem
