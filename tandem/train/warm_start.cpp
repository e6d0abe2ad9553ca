#include "tandem/train/warm_start.h"

#include "tandem/ops/conv2d.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Runs a piece of work in a stream of its own. Handles and plans belong to the thread and end with it; what
// stays is what the first ones load.
template <class Work>
void try_out(Device device, MatmulPrecision precision, Work work) {
  const NoGrad no_grad;
  const MatmulPrecisionScope scope(precision);
  const Stream stream(device);
  const StreamScope stream_scope(stream);
  work();
  stream.view().synchronize();
}

void wake_products(Device device, MatmulPrecision precision) {
  try_out(device, precision, [&] {
    const Tensor matrix = ones({8, 8}, DType::f32, device);
    matmul(matrix, matrix);
  });
}

// A convolution of cuDNN's is one that Winograd's does not do: 7×7, as residual networks begin.
void wake_convolutions(Device device, MatmulPrecision precision) {
  try_out(device, precision, [&] {
    const DType dtype = precision == MatmulPrecision::bf16 ? DType::bf16 : DType::f32;
    conv2d(ones({1, 32, 32, 3}, dtype, device), ones({64, 7, 7, 3}, dtype, device), {},
           {.window = {.stride = {2, 2}, .padding = {3, 3}}});
  });
}

// The two libraries load beside each other, once the device has a context.
void wake(Device device, bool convolves, MatmulPrecision precision) {
  const Stream first(device);
  std::future<void> convolutions =
      convolves ? std::async(std::launch::async, wake_convolutions, device, precision) : std::future<void>();
  wake_products(device, precision);
  if (convolutions.valid()) convolutions.get();
}

}  // namespace

std::future<void> begin_to_wake(const TrainOptions& options) {
  if (!has_cuda || options.device == "cpu") return {};
  return std::async(std::launch::async, [name = options.device, convolves = options.model != "mlp",
                                         precision = options.precision] {
    if (name != "auto")
      wake(parse_device(name), convolves, precision);
    else if (cuda_device_count() > 0)
      wake(cuda_device(), convolves, precision);
  });
}

}  // namespace tandem
