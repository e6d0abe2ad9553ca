// The same training on every device: networks from tiny to large, small batches and big ones. Shows where a
// GPU begins to win and what the copy of the data set costs.
#pragma once

#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_devices(const StudyOptions& options = {});

// What a few steps made of a network.
struct TrainedWeights {
  double loss = 0;                             // summed over the samples
  std::vector<std::vector<float>> parameters;  // weights and biases, layer by layer
};

// How far the result is from the expected one: the greatest difference of a parameter relative to the
// greatest way its tensor went from `start`, or the relative difference of the losses where that is more. A
// step that was left out is an error of 1, whatever the size of the weights; a number that is not finite
// makes it infinite.
double training_error(const std::vector<std::vector<float>>& start, const TrainedWeights& expected,
                      const TrainedWeights& result);

}  // namespace tandem
