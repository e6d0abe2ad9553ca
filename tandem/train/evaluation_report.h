// How a model did on a labelled set, class by class, as text and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/report/table.h"
#include "tandem/train/metrics.h"
#include "tandem/train/model_file.h"

namespace tandem {

struct TopK {
  int k = 1;
  double accuracy = 0;
};

struct EvaluationReport {
  std::string model, data;
  std::int64_t images = 0;
  std::int64_t left_out = 0;  // photographs that cannot be read
  double accuracy = 0, loss = 0;
  std::vector<TopK> top;
  std::vector<std::string> classes;
  std::vector<ClassMetrics> metrics;
  std::vector<std::int64_t> confusion;  // truth × predicted
};

// Evaluates on the test images of `data`; of the data set the model was trained on when it is empty. Images
// of another size or classes of another number than the model's are an Error. Photographs are found as
// load_test_photos() says. The model stays where it is.
EvaluationReport evaluate_model(Model& model, const std::string& data, const std::string& from = {});

std::string evaluation_text(const EvaluationReport& report, const TextStyle& style);
std::string evaluation_json(const EvaluationReport& report);

}  // namespace tandem
