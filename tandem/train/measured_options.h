// The learning rate and the batch size of a run, found by training a copy of its model for a moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/nn/module.h"
#include "tandem/report/range_test.h"
#include "tandem/train/fit_options.h"
#include "tandem/train/image_input.h"
#include "tandem/train/training_data.h"

namespace tandem {

// A range test (Smith 2017): steps with a learning rate that rises from 1e-6 to 10, until the loss diverges;
// 5 to 10 batches for each of 60 rates, no more than an epoch if that is enough. On options.device; if the
// first epoch fits the last layer, it is fitted before. The model is restored bit for bit. Throws Error if
// the loss is never finite.
RangeTest find_learning_rate(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                             Module& model);

// A sixth of the rate at which the smoothed loss was lowest, with two digits. Compared on the same curves
// with a tenth, a third, the steepest fall and the longest fall, it was the farthest from the best of a grid
// by the least (docs/training-options.md).
double choose_learning_rate(const std::vector<double>& rates, const std::vector<double>& losses);

struct BatchSizeTest {
  std::int64_t chosen = 0;
  std::string reason;  // "1,240 samples/s; 32: 1,110 samples/s, 128: 1,250 samples/s"
};

// Doubles the batch size from 8 while the throughput rises by 5 % and the batch fits into memory; an epoch
// keeps four steps. On options.device. The model is restored bit for bit.
BatchSizeTest find_batch_size(const FitOptions& options, const TrainingImages& images,
                              const ImageInput& input, Module& model);

}  // namespace tandem
