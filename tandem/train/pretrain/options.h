// How a backbone is pretrained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/ops/matmul.h"

namespace tandem {

/// Options of pretrain(). It throws Error for values out of range.
struct PretrainOptions {
  std::string data = "scenes";     ///< rendered scenes, or a folder of photographs; labels are not used
  std::string model = "resnet18";  ///< a name of models() that has a backbone
  std::int64_t steps = 8000;
  /// Images per step, each in two views. 0: 1,024 on a GPU, 64 on the CPU, and no more than there are.
  std::int64_t batch_size = 0;
  std::int64_t image_size = 112;  ///< side of the views, in pixels
  double learning_rate = 0.8;     ///< of LARS, for 1,024 images per step; proportional to their number
  double weight_decay = 1e-6;
  double warmup = 0.05;      ///< part of the steps with a rising learning rate; then it falls as a cosine
  double temperature = 0.1;  ///< of NT-Xent
  double average = 0.999;    ///< decay of the moving average of the weights, which is the result
  double attributes = 0.4;   ///< scenes: weight of the loss of heads that predict how a scene was made
  double min_area = 0.2;     ///< smallest part of an image that a view shows
  double jitter = 1;         ///< how much the colors of views change, 0 to 1
  std::vector<std::string> kinds;  ///< scenes: only these kinds; empty: all, as often as suits
  std::uint64_t seed = 1;          ///< of the weights, the scenes or the order of photographs, and the views

  std::optional<Device> device = {};              ///< none: a GPU if there is one
  std::optional<MatmulPrecision> precision = {};  ///< none: bf16 on a GPU
  std::optional<int> workers = {};                ///< photographs: threads that read them; none: chosen
  std::filesystem::path run_folder = {};          ///< empty: runs/pretrain-<data>-<model>-<n>
  bool resume = false;       ///< go on from the last checkpoint of run_folder, if there is one
  double save_every = 60;    ///< seconds between checkpoints
  std::string command = {};  ///< kept with the weights
};

}  // namespace tandem
