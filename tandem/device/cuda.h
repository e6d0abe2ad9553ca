// For CUDA sources only (*.cu, *_cuda.cpp): error checks and the handles of the CUDA libraries.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "tandem/core/error.h"
#include "tandem/device/stream.h"

namespace tandem {

// Throws Error naming the call, the file and the line, after clearing CUDA's own record of it.
void cuda_check(cudaError_t status, const char* call,
                const SourceLocation& where = SourceLocation::current());
void cublas_check(cublasStatus_t status, const char* call,
                  const SourceLocation& where = SourceLocation::current());

// After every kernel launch.
inline void check_launch(const char* kernel, const SourceLocation& where = SourceLocation::current()) {
  cuda_check(cudaGetLastError(), kernel, where);
}

inline cudaStream_t cuda_stream(StreamView stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

// This thread's cuBLAS handle for the stream's device, set to work on the stream. cuBLAS keeps memory for its
// products with the handle: those that may run at once need another lane.
cublasHandle_t cublas_handle(StreamView stream, int lane = 0);

int multiprocessor_count(Device device);

}  // namespace tandem
