#include "tandem/device/priority_stream.h"

#include "tandem/device/cuda.h"

namespace tandem {

template <>
void* create_priority_stream<Backend::cuda>(Device) {
  int lowest = 0, highest = 0;
  cuda_check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest),
             "cudaStreamCreateWithPriority");
  return stream;
}

}  // namespace tandem
