// nvJPEG's hardware backend. The few declarations that are needed are here, because its header is an optional
// part of the CUDA toolkit; versions 12 and 13 have them in common.
#include "tandem/device/jpeg_engine.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/shared_library.h"
#include "tandem/device/cuda.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/priority_stream.h"

namespace tandem {
namespace {

enum class Status : int { success = 0 };
enum class LibraryBackend : int { hardware = 3 };
enum class OutputFormat : int { interleaved_rgb = 5 };
// Beside the training of ResNet-18 on an H200 the library decodes 17,000 photographs of 500x375 per second
// with its pipeline, and without it more than the 24,400 that are trained.
constexpr unsigned no_pipeline = 1;
struct LibraryHandle;
struct DecodeState;
struct OutputImage {
  unsigned char* channel[4];
  std::size_t pitch[4];
};

SharedLibrary& library() {
  static SharedLibrary opened([] {
    SharedLibrary::Options options{
        .name = "nvJPEG", .files = {"libnvjpeg.so.13", "libnvjpeg.so.12"}, .folders = {}};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const char* folder = std::getenv(variable))
        options.folders.emplace_back(fmt::format("{}/lib64", folder));
    options.folders.emplace_back("/usr/local/cuda/lib64");
    return options;
  }());
  return opened;
}

template <class... Args>
using Function = Status (*)(Args...);

struct Functions {
  template <class F>
  static F find(const char* name) {
    return library().function<F>(name);
  }

  Function<LibraryBackend, void*, void*, unsigned, LibraryHandle**> create =
      find<decltype(create)>("nvjpegCreateEx");
  Function<LibraryHandle*> destroy = find<decltype(destroy)>("nvjpegDestroy");
  Function<LibraryHandle*, DecodeState**> create_state =
      find<decltype(create_state)>("nvjpegJpegStateCreate");
  Function<DecodeState*> destroy_state = find<decltype(destroy_state)>("nvjpegJpegStateDestroy");
  Function<LibraryHandle*, DecodeState*, int, int, OutputFormat> initialize =
      find<decltype(initialize)>("nvjpegDecodeBatchedInitialize");
  Function<LibraryHandle*, DecodeState*, const unsigned char* const*, const std::size_t*, OutputImage*,
           cudaStream_t>
      decode = find<decltype(decode)>("nvjpegDecodeBatched");
};

const Functions& functions() {
  static const Functions found;
  return found;
}

class NvJpeg : public JpegEngine {
 public:
  explicit NvJpeg(Device device) : device_(device), stream_(device) {
    const Status created =
        functions().create(LibraryBackend::hardware, nullptr, nullptr, no_pipeline, &handle_);
    check(created == Status::success && handle_ != nullptr,
          "the device has no JPEG engine (nvJPEG status {})", static_cast<int>(created));
    if (functions().create_state(handle_, &state_) != Status::success) {
      functions().destroy(handle_);
      fail("nvJPEG cannot create a decoder");
    }
  }

  ~NvJpeg() override {
    activate<Backend::cuda>(device_);
    functions().destroy_state(state_);
    functions().destroy(handle_);
  }

  bool decode(std::span<const JpegJob> jobs) override {
    if (jobs.empty()) return true;
    activate<Backend::cuda>(device_);
    bytes_.clear();
    sizes_.clear();
    images_.clear();
    for (const JpegJob& job : jobs) {
      bytes_.push_back(job.bytes.data());
      sizes_.push_back(job.bytes.size());
      images_.push_back({.channel = {job.pixels}, .pitch = {3 * static_cast<std::size_t>(job.width)}});
    }
    // The library wants this whenever the number of files changes, and after a failure.
    if (std::ssize(jobs) != std::exchange(initialized_, 0) &&
        functions().initialize(handle_, state_, static_cast<int>(jobs.size()), 1,
                               OutputFormat::interleaved_rgb) != Status::success)
      return false;
    // Despite its stream argument, the library does not wait for what is queued on the stream before it
    // writes. So nothing is: each call has an idle stream.
    const bool is_queued = functions().decode(handle_, state_, bytes_.data(), sizes_.data(), images_.data(),
                                              cuda_stream(stream_)) == Status::success;
    if (!is_queued) cudaGetLastError();  // not that of the next kernel
    stream_.view().synchronize();
    if (!is_queued) return false;
    initialized_ = std::ssize(jobs);
    return true;
  }

 private:
  Device device_;
  PriorityStream stream_;
  LibraryHandle* handle_ = nullptr;
  DecodeState* state_ = nullptr;
  std::int64_t initialized_ = 0;  // number of files of the last call
  std::vector<const unsigned char*> bytes_;
  std::vector<std::size_t> sizes_;
  std::vector<OutputImage> images_;
};

}  // namespace

template <>
std::unique_ptr<JpegEngine> open_backend_jpeg_engine<Backend::cuda>(Device device, std::string& problem) try {
  activate<Backend::cuda>(device);
  if (!library().is_installed()) {
    problem = library().missing();
    return nullptr;
  }
  return std::make_unique<NvJpeg>(device);
} catch (const Error& error) {
  cudaGetLastError();
  problem = error.what();
  return nullptr;
}

}  // namespace tandem
