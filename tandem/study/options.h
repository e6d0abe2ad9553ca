// Options of a study.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/device/device.h"
#include "tandem/ops/version.h"
#include "tandem/study/plugin/plugin_file.h"

namespace tandem {

struct KernelSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// A cluster: nodes, and the ranks of each.
struct ClusterSize {
  int nodes = 1;
  int ranks = 1;

  int total() const { return nodes * ranks; }
};

struct StudyOptions {
  bool quick = false;               // smaller cases, fewer repetitions
  std::vector<Device> devices;      // empty: all devices
  std::vector<std::string> cases;   // such as "1000x1000 i32"; empty: the study's default cases
  std::vector<Version> versions;    // empty: all
  std::vector<PluginFile> plugins;  // versions of the user, for the studies of one computation
  std::vector<std::string> peers;   // libraries to compare with: names of known_peers()
  std::vector<int> threads;         // thread counts to sweep: of `parallel`, or of training on the CPU
  // Kernel sizes for the correlation study, whose cases then are sizes only; empty: those of the cases.
  std::vector<KernelSize> kernels;
  std::vector<int> workers;  // worker counts for the workers study; empty: 1, 2, 4, … and the CPUs
  std::vector<int> ranks;    // numbers of ranks for the cluster study; empty: 1, 2, 4, … up to the CPUs
  std::vector<ClusterSize> simulate;  // clusters that the cluster study predicts
  std::uint64_t seed = 1;
  std::int64_t epochs = 0;  // for the augment and plates studies; 0: their default
  std::int64_t seeds = 0;   // for the augment study; 0: its default
  // What the workers and augment studies train; training_setup.h resolves it.
  std::string data;                  // a data set of one image size or a folder; empty: the study's default
  std::int64_t limit = 0;            // the first N training images; 0: the study's default
  std::optional<Transform> augment;  // operations for images of one size; none: digits_recipe()
  std::vector<std::int64_t> layers;  // from the pixels to the classes; empty: one hidden layer of 200
  // Weights for the plates study, as TrainOptions::pretrained; nothing is downloaded.
  std::string pretrained = "auto";
  std::string program;  // executable for process workers, as in LoaderOptions, for plugins and ranks
  // After this time no further measurement is started; 0: no limit. What is left out is one of the findings.
  double time_limit_s = 0;
  // Called before every measurement: "1000x1000 i32, parallel".
  std::function<void(const std::string& what)> on_progress = {};
};

}  // namespace tandem
