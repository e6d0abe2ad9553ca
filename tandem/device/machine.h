// Facts about this machine: the CPU, as far as this process may use it, and every CUDA device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// The CPU.
struct CpuFacts {
  std::string model;
  std::string architecture;  ///< "x86-64" or "aarch64"
  int cores = 0;             ///< of the machine
  int usable_cores = 0;      ///< limited by the affinity mask and the cgroup quota of this process
  std::string simd;          ///< "SSE2", "AVX2", "AVX-512" or "NEON"
  std::int64_t memory_bytes = 0;
};

/// One GPU.
struct CudaDeviceFacts {
  int index = 0;
  std::string name;
  int capability_major = 0;
  int capability_minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;
};

/// The CUDA installation and its GPUs.
struct CudaFacts {
  std::vector<CudaDeviceFacts> devices;
  std::string driver;   ///< version such as "13.0"; empty when there is none
  std::string runtime;  ///< version such as "13.0"; empty when there is none
  std::string problem;  ///< why there is no device
};

/// The CPU and the GPUs.
struct MachineFacts {
  CpuFacts cpu;
  CudaFacts cuda;
};

/// Queries the machine. A machine without a GPU or a driver has an empty device list and a `problem`.
MachineFacts machine_facts();

}  // namespace tandem
