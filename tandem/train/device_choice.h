// Resolves device, augment_on and workers where they are not set, by measurement.
#pragma once

#include <optional>
#include <string>

#include "tandem/nn/module.h"
#include "tandem/train/image_input.h"
#include "tandem/train/training_data.h"

namespace tandem {

struct DeviceChoice {
  Device device;
  AugmentPlace augment_on = AugmentPlace::automatic;
  std::optional<int> workers;  // none: default_worker_count()
  std::string reason;          // "212,000 samples/s; cuda:0 would do 18,400 samples/s"
};

// Times a few real training steps of the model on each device and returns the fastest choice. The model's
// values, mode and device are restored bit for bit; its gradients are dropped. Small images are also timed
// with augmentation on the CPU and on the GPU, and with several worker counts where workers share the CPUs
// with the trainer. Options that are set are kept. Photographs have long steps and are measured once per
// device: augmented on the GPU when training there, by workers on the CPU.
DeviceChoice choose_device(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                           Module& model);
// The samples per second of a few training steps, which change the model.
double training_rate(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                     Module& model, Device device);

// Three digits, with thousands separators: "212,000", "18.4".
std::string format_rate(double samples_per_second);

// With a new model and resolved options.
DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images);

}  // namespace tandem
