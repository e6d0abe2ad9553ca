// Three computations in C++, as straightforward loops over rows with OpenMP. Make them faster.
//
//     tandem study max --with kernels.cpp
//     tandem study xxt --with kernels.cpp
//     tandem study correlation --with kernels.cpp
#include <tandem/plugin.h>

#include <algorithm>

namespace {

template <class T>
void maximum(const TandemCall& call) {
  const auto* a = static_cast<const T*>(call.inputs[0].data);
  const auto* b = static_cast<const T*>(call.inputs[1].data);
  auto* out = static_cast<T*>(call.outputs[0].data);
  const int64_t count = call.outputs[0].rows * call.outputs[0].columns;
#pragma omp parallel for num_threads(call.threads)
  for (int64_t i = 0; i < count; ++i) out[i] = std::max(a[i], b[i]);
}

template <class T>
void xxt(const TandemCall& call) {
  const auto* x = static_cast<const T*>(call.inputs[0].data);
  auto* out = static_cast<T*>(call.outputs[0].data);
  const int64_t rows = call.inputs[0].rows, columns = call.inputs[0].columns;
#pragma omp parallel for num_threads(call.threads)
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < rows; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < columns; ++k) sum += x[i * columns + k] * x[j * columns + k];
      out[i * rows + j] = sum;
    }
}

template <class T>
void correlation(const TandemCall& call) {
  const auto* image = static_cast<const T*>(call.inputs[0].data);
  const auto* kernel = static_cast<const T*>(call.inputs[1].data);
  auto* out = static_cast<T*>(call.outputs[0].data);
  const int64_t height = call.inputs[0].rows, width = call.inputs[0].columns;
  const int64_t rows = call.inputs[1].rows, columns = call.inputs[1].columns;
#pragma omp parallel for num_threads(call.threads)
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      T sum = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t from_y = y + i - rows / 2, from_x = x + j - columns / 2;
          if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
            sum += kernel[i * columns + j] * image[from_y * width + from_x];
        }
      out[y * width + x] = sum;
    }
}

}  // namespace

int tandem_plugin_version() {
  return TANDEM_PLUGIN_VERSION;
}

int tandem_max(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: maximum<float>(*call); return 0;
    case TANDEM_F64: maximum<double>(*call); return 0;
    case TANDEM_U8: maximum<uint8_t>(*call); return 0;
    case TANDEM_I32: maximum<int32_t>(*call); return 0;
    case TANDEM_I64: maximum<int64_t>(*call); return 0;
    default: return 1;
  }
}

int tandem_xxt(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: xxt<float>(*call); return 0;
    case TANDEM_F64: xxt<double>(*call); return 0;
    default: return 1;
  }
}

int tandem_correlation(const TandemCall* call) {
  switch (call->inputs[0].type) {
    case TANDEM_F32: correlation<float>(*call); return 0;
    case TANDEM_F64: correlation<double>(*call); return 0;
    default: return 1;
  }
}
