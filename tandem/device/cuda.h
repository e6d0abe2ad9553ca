// For CUDA sources only (*.cu, *_cuda.cpp): error checks and cuBLAS handles.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "tandem/core/error.h"
#include "tandem/device/stream.h"

namespace tandem {

// Throws Error with the call, the file and the line. Clears CUDA's last error first.
void cuda_check(cudaError_t status, const char* call,
                const SourceLocation& where = SourceLocation::current());
void cublas_check(cublasStatus_t status, const char* call,
                  const SourceLocation& where = SourceLocation::current());

// Call it after every kernel launch.
inline void check_launch(const char* kernel, const SourceLocation& where = SourceLocation::current()) {
  cuda_check(cudaGetLastError(), kernel, where);
}

inline cudaStream_t cuda_stream(StreamView stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

// This thread's cuBLAS handle for the stream's device, set to run on the stream. A handle owns a workspace,
// so products that run concurrently on different streams need handles of different `index`.
cublasHandle_t cublas_handle(StreamView stream, int index = 0);

int multiprocessor_count(Device device);

// Whether the device runs the machine code for compute capability 9.0. Others run PTX for 7.5.
bool is_hopper(Device device);

}  // namespace tandem
