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
          .fixed_ms = 12,
          .rank_ms = 2,
          .traffic = {.buckets = {{.ready_ms = 10, .megabytes = 1}, {.ready_ms = 12, .megabytes = 2}},
                      .gathers = 10,
                      .gather_megabytes = 0},
          .sums = {.message_ms = 0.1, .megabyte_ms = 1},
          .gathers = {.message_ms = 0.05, .megabyte_ms = 1},
          .slowdown = 2.5};
}

// By hand: the buckets take 3 · 0.1 + 1 · 2 · 3/4 = 1.8 and 3 · 0.1 + 2 · 2 · 3/4 = 3.3 ms, ten gathers
// 10 · 3 · 0.05 ms. On one node nothing is hidden, whenever a bucket is ready.
TEST(PredictStep, OneNode_MatchesHandCalculation) {
  const Prediction step = predict_step(small_model(), {.nodes = 1, .ranks = 4});
  EXPECT_NEAR(step.exchange_ms, 1.8 + 3.3 + 1.5, 1e-12);
  EXPECT_NEAR(step.exposed_ms, 2.5 * 6.6, 1e-12);
  EXPECT_NEAR(step.step_ms, 20 + 16.5, 1e-12);
  EXPECT_EQ(predict_step(small_model(), {.nodes = 1, .ranks = 1}).step_ms, 20);
}

// With the same batch, each rank of this machine adds 2 ms of computation.
TEST(PredictHere, MoreRanks_RepeatWork) {
  const Prediction four = predict_here(small_model(), 4), eight = predict_here(small_model(), 8);
  EXPECT_NEAR(four.step_ms, predict_step(small_model(), {.nodes = 1, .ranks = 4}).step_ms, 1e-12);
  EXPECT_NEAR(eight.without_ms, 12 + 8 * 2, 1e-12);
  EXPECT_NEAR(eight.exchange_ms, 14 * 0.1 + 6 * 7 / 8.0 + 10 * 7 * 0.05, 1e-12);
  EXPECT_NEAR(eight.step_ms, 28 + 2.5 * eight.exchange_ms, 1e-12);
}

// One message inside the node and two through the link, which two ranks share: 2 m / 4 · 2 · 2 MB go through
// it, while each rank copies and adds 2 m / 4 · 3 MB.
TEST(PredictStep, TwoNodes_MatchHandCalculation) {
  ClusterModel model = small_model();
  model.slowdown = 1;
  const LinkTimes slow{.message_ms = 0.02, .megabyte_ms = 2};
  const double first = 0.1 + 2 * 0.02 + 2 * 2.0, second = 0.1 + 2 * 0.02 + 2 * 4.0;
  const double gathers = 10 * (0.05 + 2 * 0.02);
  const Prediction step = predict_step(model, {.nodes = 2, .ranks = 2}, slow);
  EXPECT_NEAR(step.exchange_ms, first + second + gathers, 1e-12);
  // The first, ready at 10, ends at 14.14; the step waits from 12 on.
  EXPECT_NEAR(step.exposed_ms, 10 + first + second - 12 + gathers, 1e-12);
  const LinkTimes fast{.message_ms = 0, .megabyte_ms = 0.01};
  const Prediction hidden = predict_step(model, {.nodes = 2, .ranks = 2}, fast);
  EXPECT_NEAR(hidden.exchange_ms, 2 * 0.1 + 1.5 + 3 + 10 * 0.05, 1e-12);
  EXPECT_NEAR(hidden.exposed_ms, 0.1 + 3 + 10 * 0.05, 1e-12);  // the first, of 1.6 ms, is done when 12 begins
  // Ranks wait for the slowest as the 4 of this machine do, whose exchange takes 6.6 ms alone.
  model.slowdown = 2.5;
  EXPECT_NEAR(predict_step(model, {.nodes = 2, .ranks = 2}, fast).exposed_ms, hidden.exposed_ms + 1.5 * 6.6,
              1e-12);
}

// Samples that a model explains exactly.
void add_samples(MeasuredRanks& measured, const ClusterModel& model) {
  const int ranks = measured.ranks;
  for (const double megabytes : {0.1, 4.0}) {
    measured.sums.push_back(
        {ranks, megabytes,
         model.sums.message_ms * (ranks - 1) + model.sums.megabyte_ms * ring_volume(ranks) * megabytes});
    measured.gathers.push_back(
        {ranks, megabytes, (model.gathers.message_ms + model.gathers.megabyte_ms * megabytes) * (ranks - 1)});
  }
}

TEST(FitClusterModel, MeasurementsOfAModel_GiveItBack) {
  const ClusterModel truth = small_model();
  std::vector<MeasuredRanks> measured;
  for (const int ranks : {2, 4}) {
    const Prediction step = predict_here(truth, ranks);
    measured.push_back({.ranks = ranks,
                        .added_ms = step.exposed_ms,
                        .without_ms = step.without_ms,
                        .traffic = truth.traffic});
    add_samples(measured.back(), truth);
  }
  const ClusterModel model = fit_cluster_model(measured);
  EXPECT_EQ(model.base_ranks, 4);
  EXPECT_NEAR(model.without_ms, 20, 1e-9);
  EXPECT_NEAR(model.fixed_ms, 12, 1e-9);
  EXPECT_NEAR(model.rank_ms, 2, 1e-9);
  EXPECT_NEAR(model.slowdown, 2.5, 1e-9);
  EXPECT_NEAR(predict_here(model, 8).step_ms, predict_here(truth, 8).step_ms, 1e-9);
}

TEST(FitClusterModel, Noise_NeverMakesMoreRanksFaster) {
  std::vector<MeasuredRanks> measured;
  for (const int ranks : {2, 4}) {
    measured.push_back(
        {.ranks = ranks, .added_ms = 0.1, .without_ms = 30.0 - ranks, .traffic = small_model().traffic});
    add_samples(measured.back(), small_model());
  }
  const ClusterModel model = fit_cluster_model(measured);
  EXPECT_EQ(model.rank_ms, 0);
  EXPECT_NEAR(model.fixed_ms, 27, 1e-12);
  EXPECT_EQ(model.slowdown, 1);
  measured.pop_back();  // a single number of ranks
  EXPECT_EQ(fit_cluster_model(measured).rank_ms, 0);
  EXPECT_EQ(fit_cluster_model(measured).fixed_ms, 28);
}

// ResNet-18 at 224², batch 32, on 16 cores: 1, 2, 4, 8 ranks took 311, 291, 341, 420 ms per step. Fitted to 2
// and 4 ranks, the exchange is that of the measured sums (3.58 µs per message, 143 µs per MB) and gathers.
TEST(FitClusterModel, RanksOfSixteenCores_PredictEight) {
  ClusterModel exchange{.sums = {.message_ms = 0.00358, .megabyte_ms = 0.143},
                        .gathers = {.message_ms = 0.0037, .megabyte_ms = 0}};
  exchange.traffic.buckets.assign(12, {.ready_ms = 250, .megabytes = 44.7 / 12});
  exchange.traffic.gathers = 40;
  std::vector<MeasuredRanks> measured{{.ranks = 2, .added_ms = 20.82, .without_ms = 271.90},
                                      {.ranks = 4, .added_ms = 31.24, .without_ms = 307.90}};
  for (MeasuredRanks& one : measured) {
    one.traffic = exchange.traffic;
    add_samples(one, exchange);
  }
  const ClusterModel model = fit_cluster_model(measured);
  const Prediction eight = predict_here(model, 8);
  EXPECT_NEAR(eight.exchange_ms, 12.525, 0.05);  // what the samples gave there
  EXPECT_NEAR(eight.without_ms, 377.3, 0.05 * 377.3);
  EXPECT_NEAR(eight.exposed_ms, 42.7, 0.3 * 42.7);
  EXPECT_NEAR(eight.step_ms, 420.3, 0.15 * 420.3);
}

}  // namespace
}  // namespace tandem
