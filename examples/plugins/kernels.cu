// Three computations in CUDA, one thread per element of the result. Make them faster.
//
//     tandem study max --with kernels.cu
//     tandem study xxt --with kernels.cu
//     tandem study correlation --with kernels.cu
//
// The arrays are in device memory. Kernels run on the default stream; Tandem waits for them.
#include <tandem/plugin.h>

namespace {

template <class T>
__global__ void maximum(const T* a, const T* b, T* out, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] > b[i] ? a[i] : b[i];
}

template <class T>
__global__ void xxt(const T* x, T* out, int64_t rows, int64_t columns) {
  const int64_t i = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= rows || j >= rows) return;
  T sum = 0;
  for (int64_t k = 0; k < columns; ++k) sum += x[i * columns + k] * x[j * columns + k];
  out[i * rows + j] = sum;
}

struct Sizes {
  int64_t height, width, rows, columns;
};

template <class T>
__global__ void correlation(const T* image, const T* kernel, T* out, Sizes size) {
  const int64_t y = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const int64_t x = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (y >= size.height || x >= size.width) return;
  T sum = 0;
  for (int64_t i = 0; i < size.rows; ++i)
    for (int64_t j = 0; j < size.columns; ++j) {
      const int64_t from_y = y + i - size.rows / 2, from_x = x + j - size.columns / 2;
      if (from_y >= 0 && from_y < size.height && from_x >= 0 && from_x < size.width)
        sum += kernel[i * size.columns + j] * image[from_y * size.width + from_x];
    }
  out[y * size.width + x] = sum;
}

template <class T>
const T* input(const TandemCall* call, int index) {
  return static_cast<const T*>(call->inputs[index].data);
}

template <class T>
T* output(const TandemCall* call) {
  return static_cast<T*>(call->outputs[0].data);
}

// One thread per element of a rows × columns result, in blocks of 32 × 8.
dim3 threads() { return {32, 8}; }
dim3 blocks(int64_t rows, int64_t columns) {
  return {static_cast<unsigned>((columns + 31) / 32), static_cast<unsigned>((rows + 7) / 8)};
}

template <class T>
int launch_maximum(const TandemCall* call) {
  const int64_t count = call->outputs[0].rows * call->outputs[0].columns;
  maximum<<<static_cast<unsigned>((count + 255) / 256), 256>>>(input<T>(call, 0), input<T>(call, 1), output<T>(call),
                                                               count);
  return cudaGetLastError();
}

template <class T>
int launch_xxt(const TandemCall* call) {
  const int64_t rows = call->inputs[0].rows;
  xxt<<<blocks(rows, rows), threads()>>>(input<T>(call, 0), output<T>(call), rows, call->inputs[0].columns);
  return cudaGetLastError();
}

template <class T>
int launch_correlation(const TandemCall* call) {
  const TandemArray &image = call->inputs[0], &kernel = call->inputs[1];
  correlation<<<blocks(image.rows, image.columns), threads()>>>(
      input<T>(call, 0), input<T>(call, 1), output<T>(call),
      Sizes{image.rows, image.columns, kernel.rows, kernel.columns});
  return cudaGetLastError();
}

}  // namespace

int tandem_plugin_version() {
  return TANDEM_PLUGIN_VERSION;
}

int tandem_plugin_cuda() {
  return 1;
}

int tandem_max(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: return launch_maximum<float>(call);
    case TANDEM_F64: return launch_maximum<double>(call);
    case TANDEM_U8: return launch_maximum<uint8_t>(call);
    case TANDEM_I32: return launch_maximum<int32_t>(call);
    case TANDEM_I64: return launch_maximum<int64_t>(call);
    default: return 1;
  }
}

int tandem_xxt(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: return launch_xxt<float>(call);
    case TANDEM_F64: return launch_xxt<double>(call);
    default: return 1;
  }
}

int tandem_correlation(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: return launch_correlation<float>(call);
    case TANDEM_F64: return launch_correlation<double>(call);
    default: return 1;
  }
}
