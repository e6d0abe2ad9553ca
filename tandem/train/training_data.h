// Loads the data of a run: built-in data sets, folders of idx files and folders of photographs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/image_set.h"
#include "tandem/train/options.h"

namespace tandem {

using MessageFunction = std::function<void(const std::string& line)>;

// Loads the split named `data`, a row of datasets(): fetched if it is not cached, or rendered (`digits`
// training images). Anything else is a folder with the four idx files.
DataSplit load_split(const std::string& data, const std::string& from, const MessageFunction& on_message,
                     std::int64_t digits = 60000);

// The training images: any data set, and what it is for a network.
struct TrainingImages {
  TrainingImages() = default;
  TrainingImages(const ImageSet& images);  // implicit on purpose
  // Images of any size, which the transform resizes to `side` × `side`.
  TrainingImages(std::shared_ptr<const Dataset> photographs, std::int64_t side);
  // Any data set whose transformed images have this size.
  TrainingImages(std::shared_ptr<const Dataset> given, const ImageSize& size, bool resized);

  std::shared_ptr<const Dataset> dataset;
  std::vector<std::string> classes;
  bool photographs = false;                          // of any size, resized by the transform
  std::int64_t height = 0, width = 0, channels = 0;  // of the network's input
  std::int64_t unreadable = 0;                       // images known to be unreadable before training

  std::int64_t count() const { return dataset ? dataset->size() : 0; }
};

// The training, validation and test data of a run.
struct TrainingData {
  std::string name;
  std::string source;           // what load_training_data() finds it by
  std::string validation_note;  // how the validation images were chosen; empty if there is nothing to say
  TrainingImages train;
  ImageSet validation, test;
  std::string evaluation_transform;   // photographs: from an image of any size to the network's input
  bool held_out = false;              // whether the validation set differs from the test set
  bool chooses_model = true;          // whether the validation set chooses the model; else the last is kept
  std::string validated_on = "test";  // name of the validation set
  std::string tested_on = "test";     // name of the test set
  std::vector<std::string> validation_names;  // paths of the validation images, if they have names
  std::vector<std::string> test_names;        // photographs: paths of the test images
  // Photographs of the validation and test sets that cannot be read, and files that are no part of the data.
  std::vector<SkippedSample> bad;
};

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message);

// "Data: mnist, 60,000 training and 10,000 test images, 28x28 gray, 10 classes"
std::string data_description(const TrainingData& data);

// "28x28 gray", for messages and errors.
std::string image_description(const TrainingImages& images);

}  // namespace tandem
