// What a training run has to tell, as plain data. Accuracies, precisions and probabilities are shares of 1; a
// figure that was not measured is NaN.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

struct EpochRecord {
  int epoch = 0;  // from 1
  double train_loss = not_measured, train_accuracy = not_measured;
  double val_loss = not_measured, val_accuracy = not_measured;
  double learning_rate = not_measured;
  double seconds = not_measured, samples_per_second = not_measured;
  double waited_seconds = not_measured;  // of those, for images that were not ready
};

struct Mistake {
  std::string png;                    // the picture, as the bytes of a PNG file
  std::string truth, predicted;       // names of classes
  double probability = not_measured;  // of the predicted class
  std::int64_t index = 0;             // of the image in its set
};

struct TrainingReport {
  std::string title, command;
  std::vector<Fact> facts;
  std::vector<EpochRecord> epochs;
  std::string val_name = "validation";  // what the epochs' val figures were measured on
  int best_epoch = 0;                   // the one whose weights were kept; 0: not known
  double test_accuracy = not_measured, test_loss = not_measured;
  double total_seconds = not_measured;
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // truth × predicted over the test images; empty: not measured
  std::vector<Mistake> mistakes;        // the worst first
};

}  // namespace tandem
