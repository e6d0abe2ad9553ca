// Clipping of gradients by their common norm, which keeps single bad batches from spoiling the weights.
#pragma once

#include <memory>

#include "tandem/tensor/named_tensor.h"

namespace tandem {
namespace detail {
struct ClipWorkspace;
}

/// Multiplies the gradients of all parameters by the same factor where their norm is too large, as
/// torch.nn.utils.clip_grad_norm_ does: GradientClip clip(net.parameters(), 1.0); then, between backward()
/// and the step of the optimizer, clip.apply(). Neither copied nor moved; not thread-safe.
class GradientClip {
 public:
  /// Parameters must be contiguous, on one device, and all f32 or all f64; the norm finite and above 0.
  /// Otherwise throws Error.
  GradientClip(NamedTensors parameters, double max_norm);
  ~GradientClip();
  GradientClip(const GradientClip&) = delete;
  GradientClip& operator=(const GradientClip&) = delete;

  /// Replaces every gradient g by g · min(1, max_norm / (‖all gradients‖ + 1e-6)), in memory of this object.
  /// The norm is summed in f64 in a fixed order; nothing waits for the device, so it may be captured in a
  /// CUDA graph. Throws Error if a gradient has another shape, dtype or device than its parameter.
  void apply();

  double max_norm() const { return max_norm_; }
  /// The norm before the last apply(), of shape [] in f64, on the device.
  const Tensor& norm() const;

 private:
  NamedTensors parameters_;
  double max_norm_;
  std::unique_ptr<detail::ClipWorkspace> workspace_;
};

}  // namespace tandem
