#include "tandem/device/device.h"

#include <fmt/format.h>

#include <charconv>
#include <ostream>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {

std::string Device::to_string() const {
  return is_cuda() ? fmt::format("cuda:{}", index) : "cpu";
}

std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.to_string();
}

std::vector<Device> all_devices() {
  std::vector<Device> devices{cpu_device};
  for (int index = 0; index < cuda_device_count(); ++index) devices.push_back(cuda_device(index));
  return devices;
}

Device default_device() {
  return cuda_device_count() > 0 ? cuda_device() : cpu_device;
}

Device parse_device_name(std::string_view text) {
  Device device;
  if (text == "cpu") return device;
  bool valid = text == "cuda";
  if (text.starts_with("cuda:") && text.size() > 5) {
    const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), device.index);
    valid = error == std::errc{} && end == text.data() + text.size() && device.index >= 0;
  }
  check(valid, "expected a device such as cpu, cuda or cuda:1, got '{}'", text);
  device.backend = Backend::cuda;
  return device;
}

Device parse_device(std::string_view text) {
  const Device device = parse_device_name(text);
  require_available(device);
  return device;
}

int cuda_device_count() {
  if constexpr (has_cuda)
    return probe_driver<Backend::cuda>().device_count;
  else
    return 0;
}

std::string why_no_cuda() {
  if constexpr (has_cuda)
    return probe_driver<Backend::cuda>().problem;
  else
    return "this build of Tandem has no CUDA";
}

void require_available(Device device) {
  if (!device.is_cuda()) return;
  const int count = cuda_device_count();
  check(count > 0, "device {} is not available: {}; use cpu instead", device.to_string(), why_no_cuda());
  check(device.index < count,
        "device {} is not available: this machine has {} CUDA device{}, numbered from 0", device.to_string(),
        count, count == 1 ? "" : "s");
}

void detail::throw_no_cuda(const char* op) {
  fail("[{}] this build of Tandem has no CUDA", op);
}

template <>
void activate<Backend::cpu>(Device) {}

}  // namespace tandem
