// Learning rates and batch sizes that are measured: found, printed, stored, and not measured again.
#include "tandem/train/measured_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tandem/files/read_file.h"
#include "tests/device/device_cases.h"
#include "tests/train/fit_case.h"
#include "tests/train/trainer_case.h"

namespace tandem {
namespace {

class MeasuredOptions : public testing::TestWithParam<Device> {};

constexpr ImageInput input{.flat = false, .height = 8, .width = 8, .channels = 1};

TrainingImages bars() {
  return {std::make_shared<const Bars>(64), {8, 8, 1}, false};
}

TEST_P(MeasuredOptions, RangeTest_FindsARateAndRestoresTheModel) {
  TinyNet net;
  const Values before = values_of(net.state_dict());
  const FitOptions options{.batch_size = 8, .learning_rate = 0, .workers = 0, .device = GetParam()};
  const RangeTest test = find_learning_rate(options, bars(), input, net);
  EXPECT_EQ(values_of(net.state_dict()), before);
  EXPECT_FALSE(net.parameters().front().tensor.device().is_cuda());
  ASSERT_GT(test.rates.size(), 10u);
  EXPECT_TRUE(std::ranges::is_sorted(test.rates));
  EXPECT_EQ(test.rates.front(), 1e-6);
  const auto lowest = std::ranges::min_element(test.losses) - test.losses.begin();
  EXPECT_NEAR(6 * test.chosen / test.rates[static_cast<std::size_t>(lowest)], 1, 0.05);
  EXPECT_GT(test.chosen, 1e-4);
  EXPECT_LT(test.losses[static_cast<std::size_t>(lowest)], test.losses.front());
  EXPECT_EQ(find_learning_rate(options, bars(), input, net).chosen, test.chosen);
}

// The loss is (log₁₀ rate − log₁₀ lowest)² + 1, whose minimum is known.
TEST(LearningRate, SyntheticCurve_GivesASixthOfItsMinimum) {
  for (const double lowest : {1e-3, 0.06, 0.3}) {
    std::vector<double> rates, losses;
    for (int i = 0; i <= 700; ++i) {
      rates.push_back(std::pow(10, -6 + i / 100.0));
      losses.push_back(std::pow(std::log10(rates.back() / lowest), 2) + 1);
    }
    EXPECT_NEAR(choose_learning_rate(rates, losses) / (lowest / 6), 1, 0.03);  // two digits
  }
  EXPECT_NEAR(choose_learning_rate({1e-6, 0.6, 10}, {3, 1, 2}), 0.1, 1e-12);
  EXPECT_NEAR(choose_learning_rate({1e-6}, {3}), 1.7e-7, 1e-12);
}

TEST_P(MeasuredOptions, BatchSize_KeepsFourStepsAndRestoresTheModel) {
  TinyNet net;
  const Values before = values_of(net.state_dict());
  const BatchSizeTest test =
      find_batch_size({.batch_size = 0, .workers = 0, .device = GetParam()}, bars(), input, net);
  EXPECT_EQ(values_of(net.state_dict()), before);
  EXPECT_TRUE(test.chosen == 8 || test.chosen == 16) << test.chosen;
  EXPECT_NE(test.reason.find(" samples/s"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Devices, MeasuredOptions, testing::ValuesIn(test_devices()), device_name);

class MeasuredRun : public TrainerCase {
 protected:
  MeasuredRun() {
    options_ = small_options();
    options_.learning_rate = 0;
    options_.batch_size = 0;
    options_.epochs = 2;
  }
  std::vector<std::string> messages_;
  FitCallbacks callbacks() {
    return {.on_message = [this](const std::string& line) { messages_.push_back(line); }};
  }
  bool said(const std::string& start) const {
    return std::ranges::any_of(messages_, [&](const std::string& line) { return line.starts_with(start); });
  }
};

TEST_F(MeasuredRun, Values_AreStoredAndNotMeasuredAgain) {
  run("run", false, callbacks());
  EXPECT_TRUE(said("Batch size: "));
  EXPECT_TRUE(said("Learning rate: "));
  const TrainOptions stored = read_config(folder_ / "run/config.toml");
  EXPECT_GT(stored.learning_rate, 0);
  EXPECT_GE(stored.batch_size, 8);
  const auto report = nlohmann::json::parse(get_bytes(folder_ / "run/report.json"));
  EXPECT_EQ(report["range_test"]["chosen"].get<double>(), stored.learning_rate);
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("Loss while the learning rate rises"),
            std::string::npos);

  // The same as a run with these values; a resumed one takes them from its folder.
  TrainOptions given = options_;
  given.learning_rate = stored.learning_rate;
  given.batch_size = stored.batch_size;
  given.run_folder = folder_ / "given";
  train(given);
  expect_same_weights(folder_ / "run", folder_ / "given");
  messages_.clear();
  options_.epochs = 3;
  run("run", true, callbacks());
  EXPECT_FALSE(said("Batch size: ") || said("Learning rate: "));
  EXPECT_EQ(read_config(folder_ / "run/config.toml").learning_rate, stored.learning_rate);
  EXPECT_EQ(read_config(folder_ / "run/config.toml").batch_size, stored.batch_size);
}

TEST(MeasuredOptionTexts, Auto_IsReadAndWritten) {
  TrainOptions options;
  for (const char* const key : {"lr", "batch_size"}) {
    const TrainField& field = train_field(key);
    field.set(options, parse_field_value(field, "auto"));
    EXPECT_EQ(plain_text(field.get(options)), "auto");
  }
  EXPECT_EQ(options.learning_rate, 0);
  EXPECT_EQ(options.batch_size, 0);
  check_options(options);
}

}  // namespace
}  // namespace tandem
