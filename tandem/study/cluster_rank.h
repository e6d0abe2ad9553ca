// The ranks that the cluster study measures: processes of this program that train a case together.
#pragma once

#include <string>
#include <vector>

#include "tandem/study/cluster_case.h"
#include "tandem/study/cluster_model.h"

namespace tandem {

// What one start of the ranks measured.
struct RankFigures {
  std::string engine;                         // "operations one by one on the CPU, 2 threads"
  double loss = 0;                            // of the first step
  std::vector<double> step_ms, without_ms;    // one per repetition, taken in turn
  std::vector<double> exchange_ms;            // of a whole step, alone
  std::vector<double> rank_ms;                // median computation of each rank
  StepTraffic traffic;                        // nothing for a single rank
  std::vector<ExchangeSample> sums, gathers;  // single ones
};

// Starts the ranks with equal shares of the CPUs, measures for about `budget_ms` and waits for them to end.
// Error when a rank fails or is lost.
RankFigures measure_ranks(const ClusterCase& study_case, int ranks, double budget_ms,
                          const StudyOptions& options);

// The hidden command of a rank: cluster-rank CASE BUDGET_MS SEED FILE. Rank 0 writes the file: the figures
// or what went wrong.
int run_cluster_rank(const std::vector<std::string>& words);

}  // namespace tandem
