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

struct JudgedImage {
  std::string png;                    // the picture, as the bytes of a PNG file
  std::string truth, predicted;       // names of classes
  double probability = not_measured;  // of the predicted class
  std::string name;                   // "image 7", or of a photograph its path
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
  std::string test_name = "test";       // what the test images are called
  std::vector<JudgedImage> mistakes;    // the worst first
  std::vector<JudgedImage> surest;      // of those it was right about
};

}  // namespace tandem
