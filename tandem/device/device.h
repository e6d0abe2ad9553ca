// Devices. A Backend is a kind of processor; a Device is one processor of that kind.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The kinds of devices.
enum class Backend { cpu, cuda };

/// The CPU or one GPU.
struct Device {
  Backend backend = Backend::cpu;
  int index = 0;

  bool is_cuda() const { return backend == Backend::cuda; }
  std::string to_string() const;  ///< "cpu" or "cuda:0"
  friend bool operator==(const Device&, const Device&) = default;
};

/// Writes to_string().
std::ostream& operator<<(std::ostream& out, const Device& device);

/// The CPU.
inline constexpr Device cpu_device{};

/// GPU number `index`, whether or not it exists.
inline Device cuda_device(int index = 0) {
  return {Backend::cuda, index};
}

/// The first GPU, or the CPU when no GPU can be used.
Device default_device();

/// The CPU and every GPU that can be used.
std::vector<Device> all_devices();

/// Parses "cpu", "cuda" (the first GPU) or "cuda:N". Throws Error for any other text. Does not check that the
/// device exists.
Device parse_device_name(std::string_view text);

/// Like parse_device_name(), but also throws Error when the device cannot be used.
Device parse_device(std::string_view text);

/// The number of GPUs; 0 without CUDA support in this build, without a driver or without a GPU.
int cuda_device_count();

/// The reason why cuda_device_count() is 0, as a clause ("no NVIDIA driver is installed"). Empty otherwise.
std::string why_no_cuda();

/// Throws Error, with the reason, when `device` cannot be used.
void require_available(Device device);

}  // namespace tandem
