#include "tandem/device/jpeg_engine.h"

#include "tandem/device/on_backend.h"

namespace tandem {

template <>
std::unique_ptr<JpegEngine> open_backend_jpeg_engine<Backend::cpu>(Device, std::string& problem) {
  problem = "a CPU has no JPEG engine";
  return nullptr;
}

std::unique_ptr<JpegEngine> open_jpeg_engine(Device device, std::string& problem) {
  return on_backend(device, "jpeg",
                    [&]<Backend B>() { return open_backend_jpeg_engine<B>(device, problem); });
}

}  // namespace tandem
