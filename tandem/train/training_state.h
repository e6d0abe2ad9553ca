// A run in memory: the model, its optimiser, the images on the device and the engine that trains.
#pragma once

#include <memory>

#include "tandem/data/timeline.h"
#include "tandem/train/engine.h"
#include "tandem/train/model_file.h"
#include "tandem/train/options.h"
#include "tandem/train/training_data.h"

namespace tandem {

Architecture architecture_of(const TrainOptions& options, const TrainingImages& images);

// Photographs are normalised as ImageNet's, other images go from 0 to 1.
ImageInput input_of(const TrainOptions& options, const TrainingImages& images);

// The model at the beginning of the run, on the CPU, frozen as the options say. It must fit the images.
std::unique_ptr<Module> new_model(const TrainOptions& options, const TrainingImages& images);

class TrainingState {
 public:
  // At the beginning of the run. `model` is what new_model() makes of the same options and images.
  // `on_message` is told what becomes of workers; what images and steps take is put on the timeline.
  TrainingState(std::unique_ptr<Module> model, const TrainOptions& options, const TrainingImages& images,
                Device device, const MessageFunction& on_message = {}, Timeline* timeline = nullptr);
  TrainingState(const TrainOptions& options, const TrainingImages& images, Device device)
      : TrainingState(new_model(options, images), options, images, device) {}

  Module& model() { return *model_; }
  const Module& model() const { return *model_; }
  Optimizer& optimizer() { return optimizer_; }
  const TrainingTask& task() const { return task_; }
  // Made when it is first asked for: state that is loaded must be in place by then.
  Engine& engine();

 private:
  std::unique_ptr<Module> model_;
  Optimizer optimizer_;
  std::unique_ptr<BatchSource> source_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
};

// Error unless the network takes such images, tells so many classes apart, and the recipe is one for them.
void check_fit(const TrainOptions& options, const TrainingImages& images);

}  // namespace tandem
