// How good the features of models are: accuracies of probes, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/report/interval.h"
#include "tandem/text/table.h"

namespace tandem {

// Of two models on the same labeled and test images.
struct ProbeDifference {
  double mean = 0;
  Interval interval;  // 95 %; NaN with one draw
};

struct ProbeScore {
  std::vector<double> accuracies;             // one per draw
  std::optional<ProbeDifference> difference;  // to the first model
};

struct ProbeResult {
  std::int64_t per_class = 0;  // labeled images
  ProbeScore linear, nearest;
};

struct ProbedModel {
  std::string name;          // as given
  std::string architecture;  // "resnet18"
  std::string weights;       // "random, statistics of 512 images"
  std::string input;         // "112x112 RGB"
  std::int64_t features = 0;
  std::vector<ProbeResult> results;
};

struct ProbeReport {
  std::string data;
  std::string tested_on;  // "test" or "validation"
  std::int64_t test_images = 0, classes = 0;
  double majority_share =
      0;  // of the test images: the accuracy of always answering their most frequent class
  std::int64_t draws = 0;
  std::uint64_t seed = 0;
  double penalty = 0;                 // of the linear probe
  std::vector<std::string> not_read;  // "photos/cat/3.jpg: cut short"
  std::vector<ProbedModel> models;
};

std::string probe_text(const ProbeReport& report, const TextStyle& style);
std::string probe_json(const ProbeReport& report);

}  // namespace tandem
