// A model of the time that ranks need for a step, fitted to a few ranks of one machine. Predicts the step on
// more ranks of that machine, and on nodes joined by other links.
//
// A sum of m megabytes over P ranks sends m/P from every rank to every other one, twice: first what is to be
// added, then the sums. With α per message and β per megabyte, for copying and adding it, it takes
// α (P − 1) + β · 2 m (P − 1) / P. Where R of the P ranks share a node, P − R messages of each rank and their
// data go through the node's link, which all R ranks share, while the ranks copy and add.
//
// Ranks of one machine sum when all gradients are there. Between nodes, a bucket is summed as soon as it is
// ready, while the rest of the gradients are computed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tandem/study/options.h"

namespace tandem {

// What a step sends, in the order in which it does.
struct StepTraffic {
  struct Bucket {
    double ready_ms = 0;  // since the beginning of the step, without the exchange; only nodes need it
    double megabytes = 0;
  };
  std::vector<Bucket> buckets;
  int gathers = 0;              // small exchanges that the step waits for: those of batch norms
  double gather_megabytes = 0;  // of each rank and gather, on average

  double megabytes() const;  // of all buckets
};

// How long an exchange took alone.
struct ExchangeSample {
  int ranks = 0;
  double megabytes = 0;
  double ms = 0;
};

// α and β.
struct LinkTimes {
  double message_ms = 0;
  double megabyte_ms = 0;
};

// What nodes are joined by. The times are stated, not measured.
struct Link {
  std::string_view name;
  LinkTimes times;
};
inline constexpr Link cluster_links[] = {{"25 Gb/s, 20 µs", {0.020, 8.0 / 25}},
                                         {"100 Gb/s, 5 µs", {0.005, 8.0 / 100}},
                                         {"400 Gb/s, 2 µs", {0.002, 8.0 / 400}}};

// What was measured on some ranks of this machine.
struct MeasuredRanks {
  int ranks = 0;
  double added_ms = 0;    // what the exchange adds to a step
  double without_ms = 0;  // a step whose exchange returns at once
  StepTraffic traffic;
  std::vector<ExchangeSample> sums, gathers;
};

// How an exchange that takes `exchange_ms` alone overlaps with the computation.
struct Overlap {
  double exposed_ms = 0;  // what the step takes longer than without it
  double hidden = 0;      // the share of the exchange that does not make the step longer
};
Overlap overlap_of(double step_ms, double without_ms, double exchange_ms);

struct ClusterModel {
  int base_ranks = 0;  // the ranks of this machine whose step the model starts from
  double without_ms = 0;
  // More ranks of this machine, with the same whole batch: each repeats the work that does not depend on its
  // images, such as the update, on fewer CPUs. Their step without the exchange: fixed_ms + rank_ms · ranks.
  double fixed_ms = 0, rank_ms = 0;
  StepTraffic traffic;
  LinkTimes sums, gathers;  // inside a node
  // How much longer than single exchanges those within a step take on one machine, where gradients are not in
  // the caches and ranks wait for the slowest: a factor of at least 1.
  double slowdown = 1;
};

struct Prediction {
  double step_ms = 0;
  double without_ms = 0;
  double exchange_ms = 0;
  double exposed_ms = 0;
};

// The fit with the smallest sum of squared relative errors, neither time negative. `volume(ranks)` is how
// often a sample's megabytes count.
LinkTimes fit_link(std::span<const ExchangeSample> samples, double (*volume)(double ranks));

// Needs at least one measurement, each of 2 or more ranks and of the same whole batch. The step is that of
// the largest number of ranks.
ClusterModel fit_cluster_model(std::span<const MeasuredRanks> measured);

// The step of a rank on `size`; `between` joins the nodes and is not used for one node. Every rank computes
// as a rank of this machine does, so more ranks have larger batches, and waits as long for the slowest.
Prediction predict_step(const ClusterModel& model, ClusterSize size, const LinkTimes& between = {});

// The step of `ranks` ranks of this machine, which share its CPUs and the same whole batch.
Prediction predict_here(const ClusterModel& model, int ranks);

}  // namespace tandem
