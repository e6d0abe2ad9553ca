// What a person should know before believing the figures of a run.
#pragma once

#include <string>
#include <vector>

#include "tandem/nn/loss.h"
#include "tandem/report/epoch_record.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Too few validation images for a figure, and classes that have none.
std::vector<std::string> data_warnings(const TrainingData& data);

// Too few validation images of one of two classes to choose a threshold by: fewer than 93, so that a rate of
// 50 % of them has an interval wider than ±10 points.
std::vector<std::string> threshold_warnings(const TrainingData& data);

// Training images that are sorted by class and not shuffled.
std::vector<std::string> order_warnings(const TrainingData& data, bool shuffle);

// A loss that is not finite or above chance, and an accuracy no better than always answering with one class.
// `kept` is the epoch whose model is kept. `has_chance_loss` says that the loss is the cross-entropy, whose
// value for equal probabilities is known. A model that is calibrated may be too certain before.
std::vector<std::string> result_warnings(const TrainingData& data, const std::vector<EpochRecord>& epochs,
                                         const EpochRecord& kept, bool has_chance_loss, bool calibrated);

}  // namespace tandem
