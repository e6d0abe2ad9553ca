#include "tandem/study/machine_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tandem {
namespace {

std::string in_gib(std::int64_t bytes) {
  return fmt::format("{:.0f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string capability(const CudaDeviceFacts& gpu) {
  return fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor);
}

}  // namespace

std::vector<Fact> report_facts() {
  const MachineFacts machine = machine_facts();
  std::vector<Fact> facts = {
      {"CPU", machine.cpu.model},
      {"architecture", machine.cpu.architecture},
      {"cores", std::to_string(machine.cpu.usable_cores)},
      {"SIMD", machine.cpu.simd},
      {"memory", in_gib(machine.cpu.memory_bytes)},
  };
  for (const CudaDeviceFacts& gpu : machine.cuda.devices)
    facts.push_back({fmt::format("cuda:{}", gpu.index),
                     fmt::format("{} ({}, {})", gpu.name, capability(gpu), in_gib(gpu.memory_bytes))});
  if (machine.cuda.devices.empty()) facts.push_back({"GPU", "none: " + machine.cuda.problem});
  return facts;
}

std::string devices_text(const MachineFacts& machine, const TextStyle& style) {
  const CpuFacts& cpu = machine.cpu;
  Table table{.columns = {{"device"}, {"name"}, {"memory", Align::right}, {"details"}}, .rows = {}};
  table.rows.push_back({.cells = {{"cpu", Tone::strong},
                                  {cpu.model},
                                  {in_gib(cpu.memory_bytes)},
                                  {fmt::format("{} of {} cores usable, {}, {}", cpu.usable_cores, cpu.cores,
                                               cpu.simd, cpu.architecture)}}});
  for (const CudaDeviceFacts& gpu : machine.cuda.devices)
    table.rows.push_back(
        {.cells = {{fmt::format("cuda:{}", gpu.index), Tone::strong},
                   {gpu.name},
                   {in_gib(gpu.memory_bytes)},
                   {fmt::format("capability {}, {} multiprocessors, {} free", capability(gpu),
                                gpu.multiprocessors, in_gib(gpu.free_bytes))}}});
  std::string text = format_table(table, style);
  if (machine.cuda.devices.empty())
    text += fmt::format("No CUDA device: {}.\n", machine.cuda.problem);
  else
    text += fmt::format("CUDA driver {}, runtime {}.\n", machine.cuda.driver, machine.cuda.runtime);
  return text;
}

std::string devices_json(const MachineFacts& machine) {
  using Json = nlohmann::ordered_json;
  const CpuFacts& cpu = machine.cpu;
  Json cuda = {{"devices", Json::array()}};
  for (const CudaDeviceFacts& gpu : machine.cuda.devices)
    cuda["devices"].push_back({{"device", fmt::format("cuda:{}", gpu.index)},
                               {"name", gpu.name},
                               {"capability", capability(gpu)},
                               {"multiprocessors", gpu.multiprocessors},
                               {"memory_bytes", gpu.memory_bytes},
                               {"free_bytes", gpu.free_bytes}});
  if (!machine.cuda.driver.empty()) cuda["driver"] = machine.cuda.driver;
  if (!machine.cuda.runtime.empty()) cuda["runtime"] = machine.cuda.runtime;
  if (!machine.cuda.problem.empty()) cuda["problem"] = machine.cuda.problem;
  const Json json = {{"cpu",
                      {{"device", "cpu"},
                       {"name", cpu.model},
                       {"architecture", cpu.architecture},
                       {"cores", cpu.cores},
                       {"usable_cores", cpu.usable_cores},
                       {"simd", cpu.simd},
                       {"memory_bytes", cpu.memory_bytes}}},
                     {"cuda", cuda}};
  return json.dump(2) + "\n";
}

}  // namespace tandem
