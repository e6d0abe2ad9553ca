// Shared by the benchmarks of operations: times an operation with Events (CUDA events on a GPU, time stamps
// on the CPU) for every device or version of this machine and reports bytes and operations per second.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

using Operation = std::function<Tensor()>;

// The memory traffic and arithmetic of one call.
struct Cost {
  std::int64_t bytes = 0, items = 0;
  double flops = 0;  // 0: not reported
};

inline void time_operation(benchmark::State& state, Device device, const Cost& cost, const Operation& f) {
  const StreamView stream = current_stream(device);
  Event start(device), stop(device);
  f();  // warm up: allocate from the pool, load CUDA kernels
  for (auto _ : state) {
    start.record(stream);
    const Tensor result = f();
    stop.record(stream);
    stop.synchronize();
    state.SetIterationTime(stop.elapsed_ms_since(start) / 1000);
  }
  state.SetBytesProcessed(state.iterations() * cost.bytes);
  state.SetItemsProcessed(state.iterations() * cost.items);
  if (cost.flops > 0)
    state.counters["FLOP/s"] = benchmark::Counter(cost.flops, benchmark::Counter::kIsIterationInvariantRate);
}

// `prepare` creates the inputs when the benchmark runs and returns the operation.
inline void add_bench(const std::string& name, Device device, const Cost& cost,
                      const std::function<Operation()>& prepare) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    time_operation(state, device, cost, prepare());
  })->UseManualTime();
}

inline std::vector<Device> bench_devices() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  return devices;
}

inline std::string name_of(Device device) {
  return device.is_cuda() ? "cuda" : "cpu";
}

struct BenchVersion {
  Version version;
  Device device;
};

inline std::vector<BenchVersion> bench_versions() {
  std::vector<BenchVersion> versions;
  for (Device device : bench_devices())
    for (Version version : all_versions)
      if (backend_of(version) == device.backend) versions.push_back({version, device});
  return versions;
}

}  // namespace tandem
