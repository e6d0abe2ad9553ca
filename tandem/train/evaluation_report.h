// Evaluation of a saved model on a labeled set, per class, as text and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/report/training_report.h"
#include "tandem/text/table.h"
#include "tandem/train/metrics.h"
#include "tandem/train/model_file.h"

namespace tandem {

struct EvaluateOptions {
  std::string from = {};  // folder or archive with the data set's files, if the cache does not have them
  bool pictures = false;  // for evaluation_page()
  int views = 1;          // whose probabilities are averaged (views.h)
  // The data that the model file names may be read from its path or fetched. Whoever made the file chose it.
  bool own_data = false;
};

struct TopK {
  int k = 1;
  double accuracy = 0;
};

struct EvaluationReport {
  std::string model, data;
  std::int64_t images = 0;
  std::vector<SkippedSample> skipped;  // files that were not read
  double accuracy = 0, loss = 0;
  std::vector<TopK> top;
  std::vector<std::string> classes;
  std::vector<ClassMetrics> metrics;
  std::vector<std::int64_t> confusion;  // truth × predicted
  Decision decision;                    // of the model
  int views = 1;
  TrainingReport page;  // the same for evaluation_page()
};

// Evaluates the model, on its device, on the test images of `data`; if `data` is empty, on those of the data
// that the model file names. Throws Error if that would need options.own_data, and if the image size or the
// number of classes differs from the model's.
// For models of photographs, load_test_photos() defines which files are used.
EvaluationReport evaluate_model(Model& model, const std::string& data, const EvaluateOptions& options = {});

std::string evaluation_text(const EvaluationReport& report, const TextStyle& style);
std::string evaluation_json(const EvaluationReport& report);
// HTML: the figures, the confusion matrix with pictures, for two classes the curves of all thresholds, and
// for a calibrated model its reliability.
std::string evaluation_page(const EvaluationReport& report);

}  // namespace tandem
