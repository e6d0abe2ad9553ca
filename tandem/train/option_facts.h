// The options of the training step that a run uses beyond the optimizer's, in words, for the log and the
// report.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/train/fit_options.h"

namespace tandem {

// `class_weights` as ClassWeights::values() gives them, one per class; empty without class weights.
std::vector<Fact> option_facts(const FitOptions& options, const std::vector<std::string>& classes,
                               const std::vector<double>& class_weights);

// "Class weights: cat 0.5, dog 1.5", one line for each fact.
std::vector<std::string> fact_lines(const std::vector<Fact>& facts);

}  // namespace tandem
