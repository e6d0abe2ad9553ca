// The same training on every device, for networks from tiny to large and for several batch sizes. Shows where
// the GPU becomes faster and what copying the data set costs.
#pragma once

#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_devices(const StudyOptions& options = {});

// The state of a network after a few training steps.
struct TrainedWeights {
  double loss = 0;                             // summed over the samples
  std::vector<std::vector<float>> parameters;  // weights and biases, layer by layer
};

// The error of `result`: the maximum difference of a parameter relative to the maximum change of its tensor
// since `start`, or the relative difference of the losses if that is larger. A skipped step gives an error of
// 1 regardless of the size of the weights; a non-finite value makes it infinite.
double training_error(const std::vector<std::vector<float>>& start, const TrainedWeights& expected,
                      const TrainedWeights& result);

}  // namespace tandem
