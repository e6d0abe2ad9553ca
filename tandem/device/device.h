// Where a tensor lives. A Backend is a kind of processor, known when Tandem is compiled; a Device is one of
// them. on_backend() goes from the second to the first once, at the top of an operation.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

enum class Backend { cpu, cuda };

inline constexpr bool has_cuda = TANDEM_HAS_CUDA;

struct Device {
  Backend backend = Backend::cpu;
  int index = 0;

  bool is_cuda() const { return backend == Backend::cuda; }
  std::string to_string() const;  // "cpu", "cuda:0"
  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device cpu_device{};
inline Device cuda_device(int index = 0) {
  return {Backend::cuda, index};
}

// "cpu", "cuda" (the first GPU) or "cuda:N"; throws Error for anything else.
Device device_named(std::string_view text);
// The same, and throws Error for a GPU that is not there.
Device parse_device(std::string_view text);

// 0 in a build without CUDA, and on a machine without a GPU or a driver.
int cuda_device_count();

// Why cuda_device_count() is 0, as a clause; empty when there is a GPU.
std::string why_no_cuda();

// Throws Error when `device` cannot be used here.
void require_available(Device device);

template <Backend B>
void activate(Device device);  // makes `device` the calling thread's current one

[[noreturn]] void throw_no_cuda(const char* op);

// Calls f.operator()<B>() for the device's backend. The CUDA arm exists only in a CUDA build, so that a CPU
// build needs no stubs: on_backend(x.device(), "relu", [&]<Backend B>() { relu_kernel<B>(…); }).
template <class F>
auto on_backend(Device device, const char* op, F&& f) {
  if (device.is_cuda()) {
    if constexpr (has_cuda) {
      activate<Backend::cuda>(device);
      return f.template operator()<Backend::cuda>();
    } else {
      throw_no_cuda(op);
    }
  }
  return f.template operator()<Backend::cpu>();
}

}  // namespace tandem
