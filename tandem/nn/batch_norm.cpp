#include "tandem/nn/batch_norm.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

thread_local std::int64_t ghost_batch_size = 0;  // 0: all images are one batch
thread_local double momentum_of_all = 0;         // 0: each norm has its own

}  // namespace

GhostBatches::GhostBatches(std::int64_t batch_size) : previous_(ghost_batch_size) {
  expect(batch_size > 0);
  ghost_batch_size = batch_size;
}

GhostBatches::~GhostBatches() {
  ghost_batch_size = previous_;
}

BatchNormMomentum::BatchNormMomentum(double momentum) : previous_(momentum_of_all) {
  check(momentum > 0 && momentum <= 1, "[batch_norm] expected a momentum above 0 and at most 1, got {}",
        momentum);
  momentum_of_all = momentum;
}

BatchNormMomentum::~BatchNormMomentum() {
  momentum_of_all = previous_;
}

BatchNorm::BatchNorm(std::int64_t channels, double momentum, double epsilon)
    : weight_(full({channels}, 1.0, DType::f32)),
      bias_(zeros({channels}, DType::f32)),
      statistics_{.mean = zeros({channels}, DType::f32),
                  .variance = full({channels}, 1.0, DType::f32),
                  .batches_tracked = zeros({}, DType::i64)},
      momentum_(momentum),
      epsilon_(epsilon) {
  add_parameter("weight", weight_);
  add_parameter("bias", bias_);
  add_buffer("running_mean", statistics_.mean);
  add_buffer("running_var", statistics_.variance);
  add_buffer("num_batches_tracked", statistics_.batches_tracked);
}

BatchNorm::BatchNorm(BatchNorm&& other) noexcept
    : Module(),
      weight_(std::move(other.weight_)),
      bias_(std::move(other.bias_)),
      statistics_(std::move(other.statistics_)),
      momentum_(other.momentum_),
      epsilon_(other.epsilon_),
      frozen_(other.frozen_) {
  take_registrations(
      other, {&weight_, &bias_, &statistics_.mean, &statistics_.variance, &statistics_.batches_tracked});
}

Tensor BatchNorm::forward(const Tensor& x, const Tensor& residual, FusedActivation activation) {
  std::int64_t batch_rows = ghost_batch_size;
  for (int axis = 1; axis + 1 < x.rank(); ++axis) batch_rows *= x.size(axis);
  const BatchNormOptions options{.training = uses_batch_statistics(),
                                 .momentum = momentum_of_all > 0 ? momentum_of_all : momentum_,
                                 .epsilon = epsilon_,
                                 .activation = activation,
                                 .ghost_batch_rows = batch_rows};
  return batch_norm(x, weight_, bias_, statistics_, options, residual);
}

}  // namespace tandem
