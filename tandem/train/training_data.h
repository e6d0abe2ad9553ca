// The data sets training knows by name, and folders of idx files.
#pragma once

#include <functional>
#include <string>

#include "tandem/data/image_set.h"
#include "tandem/train/options.h"

namespace tandem {

using MessageFunction = std::function<void(const std::string& line)>;

// The split that `data` names: mnist and fashion-mnist are fetched where the cache lacks them, digits are
// drawn (so many training images), anything else is a folder with the four idx files.
DataSplit load_split(const std::string& data, const std::string& from, const MessageFunction& on_message,
                     std::int64_t digits = 60000);

// What a run trains on, judges its epochs on and is tested on at the end.
struct TrainingData {
  std::string name;
  ImageSet train, validation, test;
  bool held_out = false;  // validation is not the test set
};

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message);

// "28x28 grey", for messages and errors.
std::string image_description(const ImageSet& set);

}  // namespace tandem
