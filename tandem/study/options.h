// What a caller can ask of a study.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/ops/version.h"

namespace tandem {

struct StudyOptions {
  bool quick = false;              // smaller cases, fewer repetitions
  std::vector<Device> devices;     // where to run; empty means everywhere
  std::vector<std::string> cases;  // such as "1000x1000 i32"; empty means the study's own
  std::vector<Version> versions;   // empty means all
  std::vector<int> cores;          // thread counts to sweep with `parallel`
  std::uint64_t seed = 1;
  std::int64_t epochs = 0;  // of the studies of augmentation and of plates; 0: what suits them
  std::int64_t seeds = 0;   // of the study of augmentation; likewise
  std::string data;         // mnist, fashion-mnist, digits or a folder; empty: mnist where it is at hand
  // Weights for the study of plates: a file, none, or auto: those of the cache, if they are there.
  std::string pretrained = "auto";
  std::string program;  // what process workers execute, as in LoaderOptions
};

}  // namespace tandem
