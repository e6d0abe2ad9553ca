// --device auto, --augment-on auto and --workers auto: measured, not guessed.
#pragma once

#include <string>

#include "tandem/train/training_data.h"

namespace tandem {

struct DeviceChoice {
  Device device;
  std::string augment_on;  // "cpu" or "gpu"
  std::string workers;     // their number; "auto": by the rule for all
  std::string reason;      // "0.21 M samples/s; cuda:0 would do 0.02 M"
};

// Times a few real steps on each device, with augmentation on the CPU and on the GPU, by several numbers of
// workers where they share the CPUs with the trainer, on a network of its own, and takes the fastest. What
// the options name is taken as it is. Photographs, whose steps are long, are measured once a device: on a GPU
// they are made there where they fit, on the CPU by workers.
DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images);

}  // namespace tandem
