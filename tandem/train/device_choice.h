// Resolves device, augment_on and workers where they are "auto", by measurement.
#pragma once

#include <string>

#include "tandem/train/training_data.h"

namespace tandem {

struct DeviceChoice {
  Device device;
  std::string augment_on;  // "cpu" or "gpu"
  std::string workers;     // a number, or "auto" for default_worker_count()
  std::string reason;      // "0.21 M samples/s; cuda:0 would do 0.02 M"
};

// Times a few real training steps of a scratch model on each device and returns the fastest choice. Small
// images are also timed with augmentation on the CPU and on the GPU, and with several worker counts where
// workers share the CPUs with the trainer. Options that are not "auto" are kept. Photographs have long steps
// and are measured once per device: augmented on the GPU when training there, by workers on the CPU.
DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images);

}  // namespace tandem
