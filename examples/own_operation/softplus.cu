#include "softplus.h"

namespace td = tandem;

namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

__global__ void softplus_forward(float* out, const float* x, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) out[i] = fmaxf(x[i], 0.0f) + log1pf(expf(-fabsf(x[i])));
}

__global__ void softplus_backward(float* out, const float* g, const float* x, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) out[i] = g[i] / (1 + expf(-x[i]));
}

}  // namespace

template <>
void softplus_kernel<td::Backend::cuda>(float* out, const float* x, std::int64_t count, td::StreamView stream) {
  if (count == 0) return;
  softplus_forward<<<blocks_for(count), threads, 0, static_cast<cudaStream_t>(stream.handle)>>>(out, x, count);
}

template <>
void softplus_gradient_kernel<td::Backend::cuda>(float* out, const float* g, const float* x, std::int64_t count,
                                                 td::StreamView stream) {
  if (count == 0) return;
  softplus_backward<<<blocks_for(count), threads, 0, static_cast<cudaStream_t>(stream.handle)>>>(out, g, x, count);
}
