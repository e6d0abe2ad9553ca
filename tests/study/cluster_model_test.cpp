#include "tandem/study/cluster_model.h"

#include <gtest/gtest.h>

#include "tandem/study/cluster_case.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(ParseClusterCase, ValidText_GivesNetworkSideAndBatch) {
  const ClusterCase network = parse_cluster_case("resnet18 224 batch 32");
  EXPECT_EQ(network.network.model, "resnet18");
  EXPECT_EQ(network.side, 224);
  EXPECT_EQ(network.batch_size, 32);
  EXPECT_EQ(network.name(), "resnet18 224 batch 32");
  const ClusterCase perceptron = parse_cluster_case("784,200,10 batch 64");
  EXPECT_TRUE(perceptron.is_perceptron());
  EXPECT_EQ(perceptron.network.layers, (std::vector<std::int64_t>{784, 200, 10}));
  EXPECT_EQ(perceptron.name(), "784,200,10 batch 64");
}

TEST(ParseClusterCase, InvalidText_ThrowsWithExpected) {
  for (const char* text :
       {"", "resnet18", "resnet18 batch 32", "resnet18 224", "resnet18 224 batch", "resnet18 224 batch 0",
        "resnet18 224 batch 32 ", "resnet18  224 batch 32", "resnet18 4 batch 32", "resnet18 2048 batch 32",
        "alexnet 224 batch 32", "mlp 28 batch 32", "784 batch 32", "784,0,10 batch 32", "784,200,10 batch -1",
        "784,200,10 batch 99999999"})
    EXPECT_EQ(error_text([&] { parse_cluster_case(text); }),
              "[study cluster] expected a case such as \"resnet18 224 batch 32\", got \"" +
                  std::string(text) + "\"");
}

TEST(ParseClusterSize, NodesAndRanks) {
  const ClusterSize size = parse_cluster_size("8x128");
  EXPECT_EQ(size.nodes, 8);
  EXPECT_EQ(size.ranks, 128);
  EXPECT_EQ(size.total(), 1024);
  for (const char* text : {"", "8", "x8", "8x", "0x4", "4x0", "-1x2", "2x2x2", "8X4", "99999x99999", "many"})
    EXPECT_EQ(error_text([&] { parse_cluster_size(text); }),
              "[study cluster] expected nodes and the ranks of each, such as 8x128, got '" +
                  std::string(text) + "'");
}

TEST(Overlap, StepWithAndWithoutExchange_GivesExposedAndHidden) {
  const Overlap most_hidden = overlap_of(103, 100, 12);
  EXPECT_DOUBLE_EQ(most_hidden.exposed_ms, 3);
  EXPECT_DOUBLE_EQ(most_hidden.hidden, 0.75);
  EXPECT_DOUBLE_EQ(overlap_of(99, 100, 12).exposed_ms, 0);  // noise
  EXPECT_DOUBLE_EQ(overlap_of(99, 100, 12).hidden, 1);
  EXPECT_DOUBLE_EQ(overlap_of(120, 100, 12).hidden, 0);  // ranks that wait for each other besides
  EXPECT_DOUBLE_EQ(overlap_of(120, 100, 0).hidden, 0);
}

double ring_volume(double ranks) {
  return 2 * (ranks - 1) / ranks;
}

TEST(FitLink, ExactTimes_GiveTheirLink) {
  const auto sample = [](int ranks, double megabytes) {
    return ExchangeSample{ranks, megabytes, 0.03 * (ranks - 1) + 0.5 * ring_volume(ranks) * megabytes};
  };
  const std::vector<ExchangeSample> samples{sample(2, 0.1), sample(2, 4), sample(4, 0.1), sample(4, 4)};
  const LinkTimes fit = fit_link(samples, ring_volume);
  EXPECT_NEAR(fit.message_ms, 0.03, 1e-12);
  EXPECT_NEAR(fit.megabyte_ms, 0.5, 1e-12);
}

TEST(FitLink, TimesThatWouldBeNegative_AreZero) {
  const LinkTimes no_latency = fit_link(std::vector<ExchangeSample>{{2, 1, 1}, {2, 2, 4}}, ring_volume);
  EXPECT_EQ(no_latency.message_ms, 0);
  EXPECT_GT(no_latency.megabyte_ms, 0);
  const LinkTimes no_volume = fit_link(std::vector<ExchangeSample>{{2, 1, 4}, {2, 2, 2}}, ring_volume);
  EXPECT_GT(no_volume.message_ms, 0);
  EXPECT_EQ(no_volume.megabyte_ms, 0);
  EXPECT_EQ(fit_link({}, ring_volume).message_ms, 0);
}

ClusterModel small_model() {
  return {.base_ranks = 4,
          .without_ms = 20,
          .traffic = {.buckets = {{.ready_ms = 10, .megabytes = 1}, {.ready_ms = 12, .megabytes = 2}},
                      .gathers = 10,
                      .gather_megabytes = 0},
          .sums = {.message_ms = 0.1, .megabyte_ms = 1},
          .gathers = {.message_ms = 0.05, .megabyte_ms = 1},
          .interference = 0.5};
}

// By hand: the buckets take 3 · 0.1 + 1 · 2 · 3/4 = 1.8 and 3 · 0.1 + 2 · 2 · 3/4 = 3.3 ms. The first ends at
// 11.8, the second begins when it is ready, at 12, and is 3.3 ms late. Ten gathers take 10 · 3 · 0.05 ms.
TEST(PredictStep, OneNode_MatchesHandCalculation) {
  const Prediction step = predict_step(small_model(), {.nodes = 1, .ranks = 4});
  EXPECT_NEAR(step.exchange_ms, 1.8 + 3.3 + 1.5, 1e-12);
  EXPECT_NEAR(step.exposed_ms, 1.5 + 3.3 + 0.5 * 1.8, 1e-12);
  EXPECT_NEAR(step.step_ms, 20 + 5.7, 1e-12);
  EXPECT_EQ(predict_step(small_model(), {.nodes = 1, .ranks = 1}).step_ms, 20);
}

// One message inside the node and two through the link, which two ranks share: 2 m / 4 · 2 · 2 MB go through
// it, while each rank copies and adds 2 m / 4 · 3 MB.
TEST(PredictStep, TwoNodes_MatchHandCalculation) {
  ClusterModel model = small_model();
  model.interference = 0;
  const LinkTimes slow{.message_ms = 0.02, .megabyte_ms = 2};
  const double first = 0.1 + 2 * 0.02 + 2 * 2.0, second = 0.1 + 2 * 0.02 + 2 * 4.0;
  const double gathers = 10 * (0.05 + 2 * 0.02);
  const Prediction step = predict_step(model, {.nodes = 2, .ranks = 2}, slow);
  EXPECT_NEAR(step.exchange_ms, first + second + gathers, 1e-12);
  // The first, ready at 10, ends at 14.14; the step waits from 12 on.
  EXPECT_NEAR(step.exposed_ms, 10 + first + second - 12 + gathers, 1e-12);
  const LinkTimes fast{.message_ms = 0, .megabyte_ms = 0.01};
  EXPECT_NEAR(predict_step(model, {.nodes = 2, .ranks = 2}, fast).exchange_ms, 2 * 0.1 + 1.5 + 3 + 10 * 0.05,
              1e-12);
}

TEST(FitClusterModel, MeasurementsOfAModel_GiveItBack) {
  const ClusterModel truth = small_model();
  std::vector<MeasuredRanks> measured;
  for (const int ranks : {2, 4}) {
    MeasuredRanks one{.ranks = ranks,
                      .added_ms = predict_step(truth, {.nodes = 1, .ranks = ranks}).exposed_ms,
                      .without_ms = 20,
                      .traffic = truth.traffic};
    for (const double megabytes : {0.1, 4.0}) {
      one.sums.push_back({ranks, megabytes, 0.1 * (ranks - 1) + ring_volume(ranks) * megabytes});
      one.gathers.push_back({ranks, megabytes, (0.05 + megabytes) * (ranks - 1)});
    }
    measured.push_back(one);
  }
  const ClusterModel model = fit_cluster_model(measured);
  EXPECT_EQ(model.base_ranks, 4);
  EXPECT_NEAR(model.interference, 0.5, 1e-9);
  EXPECT_NEAR(predict_step(model, {.nodes = 1, .ranks = 8}).step_ms,
              predict_step(truth, {.nodes = 1, .ranks = 8}).step_ms, 1e-9);
}

}  // namespace
}  // namespace tandem
