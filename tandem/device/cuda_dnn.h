// For CUDA sources only: the cuDNN handle and descriptors of the cuDNN backend (graph) API.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <span>

#include "tandem/core/error.h"
#include "tandem/device/stream.h"

namespace tandem {

void cudnn_check(cudnnStatus_t status, const char* call,
                 const SourceLocation& where = SourceLocation::current());

// This thread's cuDNN handle for the stream's device, set to run on the stream.
cudnnHandle_t cudnn_handle(StreamView stream);

// A backend descriptor: create it, set its attributes, finalize it, then use it.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  // For values of a cuDNN-specific type such as CUDNN_TYPE_DATA_TYPE.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void finalize();
  bool try_finalize();  // false when cuDNN does not support the combination

 private:
  struct Destroy {
    void operator()(void* handle) const { cudnnBackendDestroyDescriptor(handle); }
  };
  std::unique_ptr<void, Destroy> handle_;
};

}  // namespace tandem
