// A run in memory: the model, its optimizer, the image source and the engine.
#pragma once

#include <memory>

#include "tandem/data/loader/timeline.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/model_file.h"
#include "tandem/train/options.h"
#include "tandem/train/training_data.h"

namespace tandem {

Architecture architecture_of(const TrainOptions& options, const TrainingImages& images);

ImageInput input_of(const TrainOptions& options, const TrainingImages& images);

// Of the stages and layers that the options freeze: ", the first 2 stages frozen"; empty if there are none.
std::string frozen_text(const TrainOptions& options);

// The initial model, on the CPU, frozen according to the options. The options must have passed
// check_model_fits_data().
std::unique_ptr<Module> new_model(const TrainOptions& options, const TrainingImages& images);

// Whether the model has convolutions: a parameter with four dimensions.
bool has_convolutions(const Module& model);
// The precision as asked for, or the one that suits the model on this device.
MatmulPrecision precision_for(const FitOptions& options, const Module& model, Device device);

class TrainingState {
 public:
  // The state before the first step: moves the model, which must outlive it, to the device. `on_message`
  // receives lines about workers; image preparation and steps are recorded on the timeline. Of every batch,
  // this rank of `group` trains on its part; null: on all of it.
  TrainingState(Module& model, const FitOptions& options, const TrainingImages& images,
                const ImageInput& input, Device device, const MessageFunction& on_message = {},
                Timeline* timeline = nullptr, Group* group = nullptr);
  // With a new model and resolved options.
  TrainingState(const TrainOptions& options, const TrainingImages& images, Device device);

  Module& model() { return model_; }
  const Module& model() const { return model_; }
  Optimizer& optimizer() { return *optimizer_; }
  const TrainingTask& task() const { return task_; }
  // Created on first use: load a checkpoint before that.
  Engine& engine();

 private:
  TrainingState(std::unique_ptr<Module> model, const TrainOptions& options, const TrainingImages& images,
                Device device);

  std::unique_ptr<Module> own_model_;  // null: the caller's
  Module& model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WeightAverage> average_;  // null: none
  std::unique_ptr<Lookahead> lookahead_;    // null: none
  ClassLists classes_;                      // with balanced sampling
  std::unique_ptr<BatchSource> source_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
};

// Throws Error unless the model's input and output sizes fit the images.
void check_model_fits_data(const TrainOptions& options, const TrainingImages& images);

}  // namespace tandem
