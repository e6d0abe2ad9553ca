// The parts of batch normalization on the CPU, for all rows of a plan. Sums are two values per channel in
// f64, (2, channels).
#pragma once

#include "tandem/ops/conv/batch_norm_kernel.h"

namespace tandem::detail::batch_norm_cpu {

// The mean and Σ (x − mean)² of plan.rows rows, which are not 0.
void write_moments(const BatchNormPlan& plan, double* moments, const std::byte* x);
// Joins the moments of the shards, (shards, 2, channels), in the order of the shards. Writes args.mean and
// args.inverse_deviation unless they are null, and updates the running statistics unless they are.
void join_moments(const BatchNormPlan& plan, const BatchNormShards& shards, const double* moments,
                  const BatchNormForward& args);
// Normalizes by args.mean and args.inverse_deviation.
void apply_moments(const BatchNormPlan& plan, const BatchNormForward& args);

// Σ g and Σ g · x̂, where g is dy after the gradient of the activation. Also writes dweight and dbias.
void write_sums(const BatchNormPlan& plan, double* sums, const BatchNormBackward& args);
// dx and dresidual, by the sums of all shards, (shards, 2, channels).
void write_input_gradient(const BatchNormPlan& plan, const BatchNormShards& shards, const double* sums,
                          const BatchNormBackward& args);

}  // namespace tandem::detail::batch_norm_cpu
