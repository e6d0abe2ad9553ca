// What a study trains: the data set, the recipe and the network that its options ask for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/data/image_set.h"
#include "tandem/report/fact.h"
#include "tandem/study/options.h"

namespace tandem {

struct TrainingSetup {
  DataSplit data;
  Recipe recipe;
  std::vector<std::int64_t> layers;

  std::string network() const;  // "784,200,10"
  // data, augment and layers, for the report.
  std::vector<Fact> settings() const;
};

// `data` is what the study has loaded for these options. Throws Error, which begins with "[study NAME]",
// unless the recipe changes images of one size, the layers fit the images and the classes, and the network
// fits the memory.
TrainingSetup training_setup(const std::string& study, const StudyOptions& options, DataSplit data);

// Throws Error unless the data set has as many training images as the options ask for.
void check_limit(const std::string& study, const StudyOptions& options, const DataSplit& data);

}  // namespace tandem
