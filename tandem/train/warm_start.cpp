#include "tandem/train/warm_start.h"

#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Runs an operation once on a separate stream. Handles and plans belong to this thread and are destroyed with
// it; what remains is that the libraries are loaded.
template <class Work>
void run_once(Device device, MatmulPrecision precision, Work work) {
  const NoGrad no_grad;
  const MatmulPrecisionScope scope(precision);
  const Stream stream(device);
  const StreamScope stream_scope(stream);
  work();
  stream.view().synchronize();
}

void warm_up_matmul(Device device, MatmulPrecision precision) {
  run_once(device, precision, [&] {
    const Tensor matrix = ones({8, 8}, DType::f32, device);
    matmul(matrix, matrix);
  });
}

// A 7×7 convolution, the first layer of residual networks, goes to cuDNN and not to the Winograd kernels.
void warm_up_convolution(Device device, MatmulPrecision precision) {
  run_once(device, precision, [&] {
    const DType dtype = precision == MatmulPrecision::bf16 ? DType::bf16 : DType::f32;
    conv2d(ones({1, 32, 32, 3}, dtype, device), ones({64, 7, 7, 3}, dtype, device), {},
           {.window = {.stride = {2, 2}, .padding = {3, 3}}});
  });
}

// The two libraries load in parallel, once the device has a context.
void warm_up(Device device, bool convolves, MatmulPrecision precision) {
  const Stream stream(device);  // creates the context
  std::future<void> convolution = convolves
                                      ? std::async(std::launch::async, warm_up_convolution, device, precision)
                                      : std::future<void>();
  warm_up_matmul(device, precision);
  if (convolution.valid()) convolution.get();
}

}  // namespace

std::future<void> start_warm_up(const FitOptions& options, bool convolves) {
  if (!has_cuda || options.device == cpu_device) return {};
  return std::async(
      std::launch::async,
      [device = options.device, convolves,
       precision = options.precision.value_or(convolves ? MatmulPrecision::tf32 : MatmulPrecision::fp32)] {
        if (device) require_available(*device);
        if (device || cuda_device_count() > 0) warm_up(device.value_or(cuda_device()), convolves, precision);
      });
}

}  // namespace tandem
