// The devices that tests run on. The names of GPU tests contain `cuda`.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tandem/device/device.h"

namespace tandem {

inline std::vector<Device> test_devices() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  return devices;
}

inline std::string device_name(const testing::TestParamInfo<Device>& info) {
  return info.param.is_cuda() ? "cuda" : "cpu";
}

}  // namespace tandem
