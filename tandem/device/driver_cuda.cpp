// The CUDA backend. The only file that creates CUDA memory, streams, events and library handles.
#include "tandem/device/driver.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/cuda.h"
#include "tandem/device/cuda_dnn.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/vendor_libraries.h"

namespace tandem {

void cuda_check(cudaError_t status, const char* call, const SourceLocation& where) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  fail("{} failed: {} ({}:{})", call, cudaGetErrorString(status), where.file, where.line);
}

void cublas_check(cublasStatus_t status, const char* call, const SourceLocation& where) {
  check(status == CUBLAS_STATUS_SUCCESS, "{} failed: {} ({}:{})", call, cublasGetStatusString(status),
        where.file, where.line);
}

cublasHandle_t cublas_handle(StreamView stream, int index) {
  struct Destroy {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  thread_local std::map<std::pair<int, int>, std::unique_ptr<cublasContext, Destroy>> handles;
  auto& handle = handles[{stream.device.index, index}];
  if (!handle) {
    cublasHandle_t created = nullptr;
    cublas_check(cublasCreate(&created), "cublasCreate");
    handle.reset(created);
  }
  cublas_check(cublasSetStream(handle.get(), cuda_stream(stream)), "cublasSetStream");
  return handle.get();
}

void cudnn_check(cudnnStatus_t status, const char* call, const SourceLocation& where) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  cudaGetLastError();
  fail("{} failed: {} ({}:{})", call, cudnnGetErrorString(status), where.file, where.line);
}

cudnnHandle_t cudnn_handle(StreamView stream) {
  struct Destroy {
    void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
  };
  thread_local std::map<int, std::unique_ptr<cudnnContext, Destroy>> handles;
  auto& handle = handles[stream.device.index];
  if (!handle) {
    cudnnHandle_t created = nullptr;
    cudnn_check(cudnnCreate(&created), "cudnnCreate");
    handle.reset(created);
  }
  cudnn_check(cudnnSetStream(handle.get(), cuda_stream(stream)), "cudnnSetStream");
  return handle.get();
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t created = nullptr;
  cudnn_check(cudnnBackendCreateDescriptor(type, &created), "cudnnBackendCreateDescriptor");
  handle_.reset(created);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  cudnn_check(cudnnBackendSetAttribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t handle = value.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  set(name, CUDNN_TYPE_HANDLE, 1, &value);
}

void CudnnDescriptor::finalize() {
  cudnn_check(cudnnBackendFinalize(get()), "cudnnBackendFinalize");
}

bool CudnnDescriptor::try_finalize() {
  return cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS;
}

int multiprocessor_count(Device device) {
  int count = 0;
  cuda_check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device.index),
             "cudaDeviceGetAttribute");
  return count;
}

bool is_hopper(Device device) {
  int major = 0, minor = 0;
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index),
             "cudaDeviceGetAttribute");
  cuda_check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index),
             "cudaDeviceGetAttribute");
  return major == 9 && minor == 0;
}

template <>
void activate<Backend::cuda>(Device device) {
  thread_local int active = -1;
  if (active == device.index) return;
  cuda_check(cudaSetDevice(device.index), "cudaSetDevice");
  active = device.index;
}

template <>
const DriverState& probe_driver<Backend::cuda>() {
  static const DriverState state = [] {
    DriverState found;
    const cudaError_t status = cudaGetDeviceCount(&found.device_count);
    if (status == cudaSuccess && found.device_count > 0) {
      found.problem = missing_vendor_library();
      if (!found.problem.empty()) found.device_count = 0;
      return found;
    }
    cudaGetLastError();
    found.device_count = 0;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0)
      found.problem = "no NVIDIA driver is installed";
    else if (status == cudaErrorNoDevice || status == cudaSuccess)
      found.problem = "no CUDA GPU is visible";
    else
      found.problem = cudaGetErrorString(status);
    return found;
  }();
  return state;
}

template <>
void* system_allocate<Backend::cuda>(Device, std::size_t bytes) {
  void* memory = nullptr;
  // Allocating is allowed while this thread captures a graph, because it is not part of the captured work.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cuda_check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  const cudaError_t status = cudaMalloc(&memory, bytes);
  cuda_check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  cuda_check(status, "cudaMalloc");
  return memory;
}

template <>
void system_free<Backend::cuda>(Device, void* memory, std::size_t) noexcept {
  cudaFree(memory);
}

template <>
std::size_t available_memory<Backend::cuda>(Device) {
  std::size_t available = 0, total = 0;
  cuda_check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return available;
}

template <>
void copy_bytes<Backend::cuda>(void* to, const void* from, std::size_t bytes, StreamView stream) {
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda_stream(stream)), "cudaMemcpyAsync");
}

template <>
void pin_memory<Backend::cuda>(void* memory, std::size_t bytes) {
  cuda_check(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "cudaHostRegister");
}

template <>
void unpin_memory<Backend::cuda>(void* memory) noexcept {
  cudaHostUnregister(memory);
}

template <>
void export_memory<Backend::cuda>(void* memory, std::byte* handle) {
  cudaIpcMemHandle_t exported;
  cuda_check(cudaIpcGetMemHandle(&exported, memory), "cudaIpcGetMemHandle");
  std::memcpy(handle, &exported, sizeof exported);
}

template <>
void* open_memory<Backend::cuda>(const std::byte* handle) {
  cudaIpcMemHandle_t exported;
  std::memcpy(&exported, handle, sizeof exported);
  void* memory = nullptr;
  cuda_check(cudaIpcOpenMemHandle(&memory, exported, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
  return memory;
}

template <>
void close_memory<Backend::cuda>(void* memory) noexcept {
  cudaIpcCloseMemHandle(memory);
}

template <>
void* create_stream<Backend::cuda>(Device) {
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

template <>
void destroy_stream<Backend::cuda>(Device, void* stream) noexcept {
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

template <>
void synchronize_stream<Backend::cuda>(StreamView stream) {
  cuda_check(cudaStreamSynchronize(cuda_stream(stream)), "cudaStreamSynchronize");
}

template <>
void* create_event<Backend::cuda>(Device) {
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

template <>
void destroy_event<Backend::cuda>(Device, void* event) noexcept {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

template <>
void record_event<Backend::cuda>(void* event, StreamView stream) {
  cuda_check(cudaEventRecord(static_cast<cudaEvent_t>(event), cuda_stream(stream)), "cudaEventRecord");
}

template <>
void synchronize_event<Backend::cuda>(void* event) {
  cuda_check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
}

template <>
void wait_for_event<Backend::cuda>(StreamView stream, void* event) {
  cuda_check(cudaStreamWaitEvent(cuda_stream(stream), static_cast<cudaEvent_t>(event)),
             "cudaStreamWaitEvent");
}

template <>
double elapsed_ms_between<Backend::cuda>(void* start, void* stop) {
  float elapsed_ms = 0;
  cuda_check(
      cudaEventElapsedTime(&elapsed_ms, static_cast<cudaEvent_t>(start), static_cast<cudaEvent_t>(stop)),
      "cudaEventElapsedTime");
  return static_cast<double>(elapsed_ms);
}

}  // namespace tandem
