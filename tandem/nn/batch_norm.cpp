#include "tandem/nn/batch_norm.h"

#include "tandem/core/check.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

thread_local std::int64_t separate_images = 0;  // 0: all are one batch

}  // namespace

SeparateBatches::SeparateBatches(std::int64_t images) : previous_(separate_images) {
  expect(images > 0);
  separate_images = images;
}

SeparateBatches::~SeparateBatches() {
  separate_images = previous_;
}

BatchNorm::BatchNorm(std::int64_t channels, double momentum, double epsilon)
    : weight_(full({channels}, 1.0, DType::f32)),
      bias_(zeros({channels}, DType::f32)),
      running_mean_(zeros({channels}, DType::f32)),
      running_variance_(full({channels}, 1.0, DType::f32)),
      batches_(zeros({}, DType::i64)),
      momentum_(momentum),
      epsilon_(epsilon) {
  add_parameter("weight", weight_);
  add_parameter("bias", bias_);
  add_buffer("running_mean", running_mean_);
  add_buffer("running_var", running_variance_);
  add_buffer("num_batches_tracked", batches_);
}

Tensor BatchNorm::forward(const Tensor& x, const Tensor& residual, bool relu) {
  std::int64_t batch_rows = separate_images;
  for (int axis = 1; axis + 1 < x.rank(); ++axis) batch_rows *= x.size(axis);
  const BatchNormOptions options{.training = uses_batch(),
                                 .momentum = momentum_,
                                 .epsilon = epsilon_,
                                 .relu = relu,
                                 .batch_rows = batch_rows};
  return batch_norm(x, weight_, bias_, running_mean_, running_variance_, options, residual, batches_);
}

}  // namespace tandem
