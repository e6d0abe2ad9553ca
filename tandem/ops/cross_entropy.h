// Softmax cross-entropy, fused with its gradient: one pass over the logits gives the loss of each row and,
// when a gradient is wanted, (p − target) / n, which backward() only scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// The mean over the batch, of shape []. logits (n, classes) f32, f64 or bf16 (computed in f32); labels (n)
// i32 or i64. With smoothing s the target is 1 − s at the label plus s / classes everywhere. An empty batch
// is an Error. A label outside [0, classes) is an Error on the CPU; on CUDA, where looking would mean waiting
// for the device, it makes the loss and its row of the gradient NaN.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing = 0);

struct CrossEntropySize {
  std::int64_t rows, classes;  // neither is 0
  double label_smoothing;
};

// `losses` gets each row's loss over n, in the compute type; `gradient` may be null. All dense.
template <Backend B>
void cross_entropy_kernel(DType dtype, DType label_dtype, const CrossEntropySize& size, std::byte* losses,
                          std::byte* gradient, const std::byte* logits, const std::byte* labels,
                          StreamView stream);

// Error unless every label is in [0, classes); CUDA labels are not looked at.
void check_labels(const char* op, const Tensor& labels, std::int64_t classes);

}  // namespace tandem
