// Reading the folder of a run while it is written.
#include "tandem/train/watch/run_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* log_header =
    "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
    "waited_seconds\n";
constexpr const char* steps_header =
    "step,epoch,loss,learning_rate,samples_per_second,waited_share,memory_mb,device_memory_mb\n";
constexpr double long_after = 1e12;

class RunReaderTest : public testing::Test {
 protected:
  RunReaderTest() { fs::create_directory(path_); }
  void append(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::app | std::ios::binary) << text;
  }
  void start() {
    put_bytes(path_ / "config.toml", "data = \"digits\"\nmodel = \"mlp\"\nepochs = 5\nbatch_size = 16\n");
    put_status({.device = "cpu", .epochs = 5, .steps_per_epoch = 100, .samples_per_epoch = 1600});
    lock(getpid());
    append("log.csv", log_header);
    append("steps.csv", steps_header);
  }
  void put_status(const RunStatus& status) { put_bytes(path_ / "status.json", to_json_text(status)); }
  void lock(long process, const std::string& host = "") {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    put_bytes(path_ / ".lock", std::to_string(process) + " " + (host.empty() ? name : host) + "\n");
  }
  const WatchedRun& poll(double now = long_after) {
    reader_.poll(now, [&](const EpochRecord& record) { epochs_.push_back(record.epoch); });
    return reader_.run();
  }

  TempFolder folder_;
  fs::path path_ = folder_ / "run";
  RunReader reader_{path_};
  std::vector<int> epochs_;
};

TEST_F(RunReaderTest, GrowingRun_IsFollowed) {
  EXPECT_EQ(poll().phase, RunPhase::lost);  // an empty folder that nobody has locked
  start();
  EXPECT_EQ(poll().phase, RunPhase::starting);
  EXPECT_EQ(poll().data, "digits");
  EXPECT_EQ(poll().batch_size, "16");
  append("steps.csv", "50,1,1.5,0.5,1000.0,0.2500,512.5,\n");
  const WatchedRun& run = poll();
  EXPECT_EQ(run.phase, RunPhase::running);
  EXPECT_EQ(run.last_step.step, 50);
  EXPECT_EQ(run.last_step.waited_share, 0.25);
  EXPECT_EQ(run.last_step.memory_mb, 512.5);
  EXPECT_TRUE(std::isnan(run.last_step.device_memory_mb));
  EXPECT_EQ(run.done_share(), 0.1);
  EXPECT_DOUBLE_EQ(run.seconds_left(), 0.9 * 5 * 1600 / 1000);
  append("steps.csv", "100,1,1.0,0.5,2000.0,0.0000,600.0,\n");
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n");
  poll();
  append("log.csv", "2,1,0.6,0.9,0.75,0.5,1.5,1500,0.1\n3,0.9,0.7,1.1,0.7,0.5,1.5,1500,0.1\n");
  poll();
  EXPECT_EQ(epochs_, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(run.epochs_done, 3);
  EXPECT_EQ(run.best_epoch.epoch, 2);
  EXPECT_EQ(run.last_epoch.val_accuracy, 0.7);
  EXPECT_EQ(run.val_loss.points().size(), 3U);
  EXPECT_EQ(run.steps.of(&StepRecord::loss).points().size(), 2U);
  EXPECT_FALSE(reader_.poll(long_after));
}

TEST_F(RunReaderTest, End_IsTold) {
  start();
  const std::map<RunState, RunPhase> phases{{RunState::finished, RunPhase::finished},
                                            {RunState::stopped, RunPhase::stopped},
                                            {RunState::failed, RunPhase::failed}};
  for (const auto& [state, phase] : phases) {
    put_status({.state = state, .message = std::string(static_cast<std::size_t>(state), 'x')});
    EXPECT_EQ(poll().phase, phase);
    EXPECT_TRUE(poll().has_ended());
  }
}

TEST_F(RunReaderTest, ProcessThatIsGone_IsLostUnlessItWroteJustNow) {
  start();
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n");
  lock(0x7FFFFFFE);
  EXPECT_EQ(poll().phase, RunPhase::lost);
  EXPECT_EQ(poll(static_cast<double>(time(nullptr))).phase, RunPhase::running);
  lock(1, "another-host");  // cannot be seen
  EXPECT_EQ(poll().phase, RunPhase::running);
}

TEST_F(RunReaderTest, RunOfAnOlderVersion_HasEndedWithItsProcess) {
  put_bytes(path_ / "config.toml", "data = \"digits\"\nmodel = \"mlp\"\nepochs = 5\ndevice = \"cpu\"\n");
  append("log.csv", log_header + std::string("1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n"));
  append("steps.csv",
         "step,epoch,loss,learning_rate,samples_per_second,waited_share\n39,1,1.25,0.5,1500,0\n");
  EXPECT_EQ(poll().phase, RunPhase::lost);
  put_bytes(path_ / "report.json", "{}");
  const WatchedRun& run = poll();
  EXPECT_EQ(run.phase, RunPhase::finished);
  EXPECT_EQ(run.status.epochs, 5);
  EXPECT_EQ(run.status.device, "cpu");
  EXPECT_EQ(run.steps_per_epoch(), 39);
  EXPECT_EQ(run.unreadable_rows, 0);
}

TEST_F(RunReaderTest, TornRows_AreLeftOutAndCounted) {
  start();
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n2,1.2");  // torn at the end: waits
  EXPECT_EQ(poll().epochs_done, 1);
  EXPECT_EQ(poll().unreadable_rows, 0);
  append("log.csv", "\n3,1.25,0.5,1.0,0.7,0.5,1.5,1500,0.1\nGarbage \x1b[2J\n,,,,,,,,\n1,1,1,1,1,1,1,1,1\n");
  EXPECT_EQ(poll().epochs_done, 3);
  EXPECT_EQ(epochs_, (std::vector<int>{1, 3}));
  EXPECT_EQ(poll().unreadable_rows, 4);
}

TEST_F(RunReaderTest, FiguresThatAreNotFinite_AreKeptOutOfTheCurves) {
  start();
  append("log.csv", "1,nan,0.5,,0.6,0.5,1.5,1500,0.1\n2,inf,0.5,-nan,nan,0.5,1.5,1500,0.1\n");
  const WatchedRun& run = poll();
  EXPECT_EQ(run.epochs_done, 2);
  EXPECT_EQ(run.best_epoch.epoch, 1);
  EXPECT_TRUE(run.train_loss.empty() && run.val_loss.empty());
  EXPECT_EQ(run.val_accuracy.points().size(), 1U);
}

TEST_F(RunReaderTest, HugeLine_IsLeftOut) {
  start();
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n" + std::string(50'000'000, '9') +
                        "\n2,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n");
  do poll();
  while (reader_.has_more());
  EXPECT_EQ(epochs_, (std::vector<int>{1, 2}));
}

TEST_F(RunReaderTest, FolderThatDisappears_IsToldAndSurvived) {
  start();
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n");
  poll();
  fs::rename(path_, folder_ / "away");
  EXPECT_EQ(poll().phase, RunPhase::gone);
  EXPECT_EQ(poll().epochs_done, 1);  // what was read is still there
  fs::rename(folder_ / "away", path_);
  append("log.csv", "2,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n");
  EXPECT_EQ(poll().phase, RunPhase::running);
  EXPECT_EQ(epochs_, (std::vector<int>{1, 2}));
}

TEST_F(RunReaderTest, ResumedRun_IsReadAnew) {
  start();
  append("log.csv", "1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n2,1.25,0.5,1.0,0.9,0.5,1.5,1500,0.1\n");
  append("steps.csv", "100,1,1.5,0.5,1000.0,0,1,\n200,2,1.5,0.5,1000.0,0,1,\n");
  EXPECT_EQ(poll().best_epoch.epoch, 2);
  put_bytes(path_ / "log.csv", log_header + std::string("1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1\n"));
  put_bytes(path_ / "steps.csv", steps_header + std::string("100,1,1.5,0.5,1000.0,0,1,\n"));
  const WatchedRun& run = poll();
  EXPECT_EQ(run.best_epoch.epoch, 1);
  EXPECT_EQ(run.epochs_done, 1);
  EXPECT_EQ(run.last_step.step, 100);
  EXPECT_EQ(run.steps.of(&StepRecord::loss).points().size(), 1U);
}

TEST_F(RunReaderTest, OwnMetrics_AreRead) {
  append("log.csv", "epoch,train_loss,\"precision, mean\",val_accuracy\n1,0.5,0.25,0.75\n");
  const WatchedRun& run = poll();
  ASSERT_EQ(run.last_epoch.metrics.size(), 1U);
  EXPECT_EQ(run.last_epoch.metrics[0].name, "precision, mean");
  EXPECT_EQ(run.last_epoch.metrics[0].value, 0.25);
  EXPECT_EQ(run.last_epoch.val_accuracy, 0.75);
}

TEST_F(RunReaderTest, Pretraining_HasStepsOnly) {
  put_bytes(path_ / "config.toml", "steps = 2000\n");
  lock(getpid());
  append("log.csv",
         "step,loss,retrieval_accuracy,attribute_loss,alignment,uniformity,learning_rate,seconds,"
         "views_per_second\n10,5.5,0.1,0,1,-1,0.1,2.000,640.0\n");
  const WatchedRun& run = poll();
  EXPECT_EQ(run.last_step.step, 10);
  EXPECT_EQ(run.last_step.samples_per_second, 640);
  EXPECT_EQ(run.done_share(), 0.005);
  EXPECT_EQ(run.epochs_done, 0);
}

TEST_F(RunReaderTest, TextsOfFiles_AreClean) {
  start();
  put_bytes(path_ / "config.toml", "data = \"a\\u001b[2Jb\"\nmodel = \"x\\ny\"\n");
  put_status({.state = RunState::failed, .message = "bad\x1b[31m", .warnings = {"one\r\ntwo\xff"}});
  put_bytes(path_ / "log.csv", "epoch,\x1b]0;title\x07\n1,1\n");
  const WatchedRun& run = poll();
  std::string all = run.data + run.model + run.status.message + run.status.warnings.at(0);
  for (const NamedFigure& metric : run.last_epoch.metrics) all += metric.name;
  for (const char c : all) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) << all;
  EXPECT_EQ(run.data, "a [2Jb");
}

TEST_F(RunReaderTest, WrongFiles_DoNotStopIt) {
  start();
  put_bytes(path_ / "config.toml", "not toml [");
  put_bytes(path_ / "status.json", "{\"state\": 7}");
  put_bytes(path_ / ".lock", std::string(100'000, '7'));
  fs::create_directory(path_ / "report.json");
  EXPECT_NO_THROW(poll());
  put_bytes(path_ / "status.json", "{\"state\": \"running\", \"epochs\": -5, \"warnings\": [1, {}, \"w\"]}");
  EXPECT_EQ(poll().status.epochs, 0);
  EXPECT_EQ(poll().status.warnings, (std::vector<std::string>{"w"}));
  put_bytes(path_ / "status.json", std::string(2 << 20, ' '));
  EXPECT_NO_THROW(poll());
}

TEST(RunStatus, Json_RoundTrips) {
  const RunStatus status{.state = RunState::failed,
                         .message = "no \"luck\"",
                         .device = "cuda:1",
                         .engine = "perceptron",
                         .validated_on = "test",
                         .epochs = 3,
                         .steps_per_epoch = 40,
                         .samples_per_epoch = 600,
                         .test_accuracy = 0.875,
                         .tested_on = "test images",
                         .warnings = {"a", "b"}};
  EXPECT_EQ(parse_run_status(to_json_text(status)), status);
  EXPECT_FALSE(parse_run_status("[]"));
  EXPECT_FALSE(parse_run_status(""));
  EXPECT_FALSE(parse_run_status("{\"state\": \"walking\"}"));
}

TEST(FindRuns, FoldersAndFoldersOfRuns) {
  const TempFolder folder;
  const auto find = [&](const std::vector<std::string>& names, std::size_t max = 8) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((folder / name).string());
    std::vector<std::string> found;
    for (const fs::path& path : find_runs(paths, max))
      found.push_back(path.lexically_relative(folder.path()));
    return found;
  };
  const auto now = fs::file_time_type::clock::now();
  for (int i = 1; i <= 3; ++i) {
    const fs::path run = folder / ("runs/" + std::to_string(i));
    fs::create_directories(run);
    put_bytes(run / "log.csv", "epoch\n");
    fs::last_write_time(run / "log.csv", now + std::chrono::seconds(i == 2 ? 10 : i));
  }
  fs::create_directories(folder / "runs/other");
  fs::create_directories(folder / "empty");
  put_bytes(folder / "file", "x");
  using Names = std::vector<std::string>;
  EXPECT_EQ(find({"runs"}), (Names{"runs/2", "runs/3", "runs/1"}));
  EXPECT_EQ(find({"runs"}, 2), (Names{"runs/2", "runs/3"}));
  EXPECT_EQ(find({"runs/3", "runs/1"}), (Names{"runs/3", "runs/1"}));
  const auto error = [&](const std::string& name) { return error_text([&] { find({name}); }); };
  EXPECT_EQ(error("none"), "[watch] " + (folder / "none").string() + ": no such folder");
  EXPECT_EQ(error("file"),
            "[watch] " + (folder / "file").string() + ": expected the folder of a run, got a file");
  EXPECT_EQ(error("empty"), "[watch] " + (folder / "empty").string() +
                                ": expected the folder of a run or of runs, it has no log.csv");
}

}  // namespace
}  // namespace tandem
