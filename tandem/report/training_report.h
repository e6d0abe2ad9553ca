// The result of a training run as plain data. Accuracies, precisions and probabilities are in 0..1; a figure
// that was not measured is NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/report/binary_curves.h"
#include "tandem/report/calibration.h"
#include "tandem/report/epoch_record.h"
#include "tandem/report/fact.h"
#include "tandem/report/fold_record.h"
#include "tandem/report/range_test.h"
#include "tandem/report/step_record.h"

namespace tandem {

struct ClassifiedImage {
  std::string file;   // bytes of a PNG or JPEG file
  std::string map;    // the same with the class activation map of the predicted class; empty: none
  std::string truth;  // class names
  std::string predicted;
  double probability = not_measured;  // of the predicted class
  std::string name;                   // "image 7", or the path of a photograph
};

// The images of one cell of the confusion matrix that the page shows.
struct CellImages {
  std::size_t truth = 0, predicted = 0;  // indices of classes
  std::vector<ClassifiedImage> images;   // most confident first
};

struct TrainingReport {
  std::string title;
  std::string command;
  std::vector<Fact> facts;
  std::vector<Fact> provenance;  // provenance(), provenance.h
  std::vector<Fact> options;     // all of the configuration; empty: not known
  std::vector<EpochRecord> epochs;
  StepCurves steps;                      // empty: there were no steps
  std::string batch_sheet;               // bytes of a JPEG file: the first training images; empty: none
  std::string batch_note;                // what else is done to them
  std::string timeline;                  // trace_view(), trace_view.h; empty: there was no trace
  std::string val_name = "validation";   // name of the data the val figures were measured on
  int best_epoch = 0;                    // the epoch whose weights were kept; 0: unknown
  std::string chosen_on = "validation";  // name of the data that chose that epoch; empty: the last was kept
  std::vector<std::string> warnings;
  double test_accuracy = not_measured;  // of the kept weights; not measured while the run goes on
  double test_loss = not_measured;
  double fp32_accuracy = not_measured;  // with features in fp32, where others trained the last layer
  double total_seconds = not_measured;
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // [truth][predicted] counts over the test images; empty: not measured
  std::string test_name = "test";       // name of the test data
  // Of a cross-validation, whose predictions are then the test figures; empty: there was none.
  std::vector<FoldRecord> folds;
  std::optional<RangeTest> range_test;          // that has found the learning rate
  std::optional<BinaryCurves> curves;           // of two classes
  std::optional<Calibration> calibration;       // of a model with a temperature
  std::vector<CellImages> cells;                // at most one per cell; a cell may have none
  std::vector<ClassifiedImage> mistakes;        // most confident first
  std::vector<ClassifiedImage> most_confident;  // correct predictions, most confident first
};

// Whether the learning rate of an epoch differs from that of another: a constant needs no curve.
inline bool has_several_learning_rates(const TrainingReport& report) {
  for (const EpochRecord& record : report.epochs)
    if (record.learning_rate != report.epochs.front().learning_rate) return true;
  return false;
}

// The epoch whose weights were kept; null if it is unknown.
inline const EpochRecord* kept_epoch(const TrainingReport& report) {
  for (const EpochRecord& record : report.epochs)
    if (record.epoch == report.best_epoch) return &record;
  return nullptr;
}

}  // namespace tandem
