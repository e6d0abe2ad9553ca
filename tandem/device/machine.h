// What this machine has: the CPU as this process may use it, and every CUDA device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/device/device.h"

namespace tandem {

struct CpuFacts {
  std::string model;
  std::string architecture;  // "x86-64", "aarch64"
  int cores = 0;             // of the machine
  int usable_cores = 0;      // by this process: affinity and cgroup quota
  std::string simd;
  std::int64_t memory_bytes = 0;
};

struct CudaDeviceFacts {
  int index = 0;
  std::string name;
  int capability_major = 0, capability_minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;
};

struct CudaFacts {
  std::vector<CudaDeviceFacts> devices;
  std::string driver, runtime;  // "13.0"; empty where there is none
  std::string problem;          // why there is no device
};

struct MachineFacts {
  CpuFacts cpu;
  CudaFacts cuda;
};

// Never fails: a machine without a GPU or a driver has an empty list and the reason.
MachineFacts machine_facts();

template <Backend B>
CudaFacts backend_facts();

}  // namespace tandem
