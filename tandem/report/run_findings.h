// Figures of compared runs that both the tables and the sentences need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/report/comparison.h"
#include "tandem/report/run_comparison.h"

namespace tandem::detail {

std::int64_t test_images(const TrainingReport& report);

// Of a figure over the epochs; NaN if no epoch has it.
struct Spread {
  double median = not_measured, min = not_measured, max = not_measured;
};
Spread spread_of(const TrainingReport& report, double EpochRecord::*figure);

// "–" if there is no such fact.
std::string value_of(const std::vector<Fact>& facts, const std::string& name);

// Marked where the runs differ.
std::vector<ComparisonRow> option_rows(std::span<const ComparedRun> runs);
std::vector<std::string> differing_options(std::span<const ComparedRun> runs);

template <class Key>
bool same_for_all(std::span<const ComparedRun> runs, const Key& key) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const ComparedRun& run) { return key(run) == key(runs[0]); });
}

}  // namespace tandem::detail
