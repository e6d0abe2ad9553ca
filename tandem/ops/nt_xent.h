// The contrastive loss of SimCLR (Chen et al. 2020), fused with its gradient: the forward pass also computes
// the gradient of the embeddings when one is needed, so backward() only scales it. The matrix of similarities
// is the only large temporary. No step waits for the host, so a CUDA graph can capture it.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of nt_xent().
struct NtXentOptions {
  double temperature = 0.2;  ///< divides the cosine similarities; at least 1e-6
};

/// The normalized temperature-scaled cross-entropy of embeddings (2n, d), of shape []. Rows i and i + n are
/// two views of image i. With s the cosine similarities divided by the temperature, it is the mean over all
/// rows r of log Σ exp(s[r, c]) over c ≠ r, minus s[r, partner of r]. f32, f64 or bf16 embeddings; products
/// have this thread's matmul_precision() (bf16 for bf16 embeddings), everything else is f32 or f64. Equal
/// inputs give equal bits. Throws Error for fewer than 2 pairs, an odd number of rows, another rank or dtype,
/// a temperature out of range, and in a part of a batch that has been cut into shards, since every row is
/// compared with all others.
///
/// The embeddings are usually those of a projection head:
/// Sequential(Linear(512, 512, {.bias = false}), BatchNorm(512), ReLU(), Linear(512, 128)).
Tensor nt_xent(const Tensor& embeddings, const NtXentOptions& options = {});

/// Result of nt_xent_with_accuracy(); both are of shape [] and on the device of the embeddings.
struct NtXentResult {
  Tensor loss;                ///< as of nt_xent()
  Tensor retrieval_accuracy;  ///< f32 or f64, without a gradient
};

/// The loss, and from the same similarities the fraction of rows whose partner is more similar than every
/// other row, from 0 to 1. Rows that are all equal give 0.
NtXentResult nt_xent_with_accuracy(const Tensor& embeddings, const NtXentOptions& options = {});

}  // namespace tandem
