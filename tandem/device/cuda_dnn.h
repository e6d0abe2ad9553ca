// For CUDA sources only: cuDNN's handle and the descriptors of its graph interface.
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

// This thread's cuDNN handle for the stream's device, set to work on the stream.
cudnnHandle_t cudnn_handle(StreamView stream);

// A descriptor of the graph interface: made, given attributes, finalised, used.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  // For values whose type cuDNN names itself (CUDNN_TYPE_DATA_TYPE, …).
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void finalize();
  bool try_finalize();  // false where cuDNN refuses: no such engine, not supported

 private:
  struct Destroy {
    void operator()(void* handle) const { cudnnBackendDestroyDescriptor(handle); }
  };
  std::unique_ptr<void, Destroy> handle_;
};

}  // namespace tandem
