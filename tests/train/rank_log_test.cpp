// The time of the exchange between ranks, in log.csv, in the checkpoint and in the report.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>

#include "tandem/train/trainer.h"
#include "tests/dist/rank_threads.h"
#include "tests/train/log_lines.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

class RankLog : public testing::Test {
 protected:
  RankLog() {
    write_small_digits(folder_ / "data");
    options_.data = (folder_ / "data").string();
    options_.layers = {784, 24, 10};
    options_.epochs = 2;
    options_.shards = 4;
    options_.device = cpu_device;
    options_.workers = 0;
    options_.run_folder = folder_ / "run";
  }

  void train_on(int ranks, const FitCallbacks& callbacks = {}) {
    const auto errors =
        on_ranks(ranks, over_shared_memory(), [&](Group& group) { train(options_, group, callbacks); });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
  // The cells of a column, by epoch; empty without that column.
  std::vector<std::string> column(const std::string& wanted) const {
    std::istringstream lines(get_bytes(RunFolder{folder_ / "run"}.log()));
    std::vector<std::string> found;
    std::size_t index = 0;
    bool is_header = true, exists = false;
    for (std::string line, cell; std::getline(lines, line); is_header = false) {
      std::istringstream cells(line);
      for (std::size_t i = 0; std::getline(cells, cell, ','); ++i) {
        if (is_header && cell == wanted) {
          index = i;
          exists = true;
        } else if (!is_header && exists && i == index) {
          found.push_back(cell);
        }
      }
    }
    return found;
  }

  TempFolder folder_;
  TrainOptions options_;
};

TEST_F(RankLog, Ranks_LogTheTimeOfTheExchange) {
  train_on(2);
  const std::vector<std::string> exchange = column("exchange_seconds"), seconds = column("seconds");
  ASSERT_EQ(exchange.size(), 2u);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_GT(std::stod(exchange[epoch]), 0);
    EXPECT_LE(std::stod(exchange[epoch]),
              std::stod(seconds[epoch]) + 0.5);  // another rank's clock stops later
  }
  const std::string report = get_bytes(RunFolder{folder_ / "run"}.report());
  EXPECT_NE(report.find("2 on n0, 4 shards; "), std::string::npos);
  EXPECT_NE(report.find(">exchange</th>"), std::string::npos);
}

TEST_F(RankLog, OneRankWithShards_ExchangesNothing) {
  train_on(1);
  EXPECT_EQ(column("exchange_seconds"), (std::vector<std::string>{"0", "0"}));
  EXPECT_EQ(get_bytes(RunFolder{folder_ / "run"}.report()).find(">exchange</th>"), std::string::npos);
}

TEST_F(RankLog, NoShards_HasNoColumn) {
  options_.shards = 1;
  train(options_);
  EXPECT_EQ(column("waited_seconds").size(), 2u);
  EXPECT_TRUE(column("exchange_seconds").empty());
}

TEST_F(RankLog, ResumedOnOneRank_KeepsWhatWasMeasured) {
  std::atomic<int> polls = 0;  // the first two are those before the first step
  train_on(2, {.stop_signal = [&] { return ++polls == 3 ? SIGTERM : 0; }});
  EXPECT_TRUE(column("exchange_seconds").empty());
  const TensorFile saved = read_checkpoint(RunFolder{folder_ / "run"}.checkpoint());
  const auto times = std::ranges::find(saved.tensors, "exchange", &NamedTensor::name);
  ASSERT_NE(times, saved.tensors.end());
  ASSERT_EQ(times->tensor.numel(), 1);
  const double in_epoch = times->tensor.to_vector<double>()[0];
  EXPECT_GT(in_epoch, 0);
  options_.resume = true;
  train_on(1);  // without any exchange
  std::vector<std::string> exchange = column("exchange_seconds");
  ASSERT_EQ(exchange.size(), 2u);
  EXPECT_EQ(std::stod(exchange[0]), in_epoch);
  EXPECT_EQ(exchange[1], "0");
  options_.epochs = 3;
  train_on(2);
  const std::vector<std::string> more = column("exchange_seconds");
  ASSERT_EQ(more.size(), 3u);
  EXPECT_EQ(more[0], exchange[0]);
  EXPECT_EQ(more[1], exchange[1]);
  EXPECT_GT(std::stod(more[2]), 0);
}

}  // namespace
}  // namespace tandem
