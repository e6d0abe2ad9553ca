#include "tandem/study/studies.h"

#include <fmt/format.h>

#include "tandem/core/check.h"
#include "tandem/device/machine.h"

namespace tandem {
namespace {

constexpr Study studies[] = {
    {"max", "element-wise maximum of two matrices", study_max},
    {"xxt", "products of every row of a matrix with every other", study_xxt},
    {"correlation", "weighted sums of every pixel's neighbours", study_correlation},
};

}  // namespace

std::span<const Study> all_studies() {
  return studies;
}

const Study& find_study(std::string_view name) {
  for (const Study& study : studies)
    if (study.name == name) return study;
  fail("expected a study out of max, xxt, correlation, all, got '{}'", name);
}

std::vector<Fact> report_facts() {
  const MachineFacts machine = machine_facts();
  constexpr double gib = 1 << 30;
  std::vector<Fact> facts = {
      {"CPU", machine.cpu.model},
      {"architecture", machine.cpu.architecture},
      {"cores", std::to_string(machine.cpu.usable_cores)},
      {"SIMD", machine.cpu.simd},
      {"memory", fmt::format("{:.0f} GiB", static_cast<double>(machine.cpu.memory_bytes) / gib)},
  };
  for (const CudaDeviceFacts& gpu : machine.cuda.devices)
    facts.push_back({fmt::format("cuda:{}", gpu.index),
                     fmt::format("{} ({}.{}, {:.0f} GiB)", gpu.name, gpu.capability_major,
                                 gpu.capability_minor, static_cast<double>(gpu.memory_bytes) / gib)});
  if (machine.cuda.devices.empty()) facts.push_back({"GPU", "none: " + machine.cuda.problem});
  return facts;
}

}  // namespace tandem
