// LARS: layer-wise adaptive rate scaling (You et al. 2017), for large batches. Formulas and exclusions are
// those of SimCLR's recipe.
#pragma once

#include <memory>

#include "tandem/optim/fused_optimizer.h"

namespace tandem {
namespace detail {
struct LarsWorkspace;
}

struct LarsOptions {
  double lr = 0.3;  ///< of a batch of 256; usually scaled with the batch
  double momentum = 0.9;
  double weight_decay = 1e-6;       ///< added to the gradient (L2), of tensors of rank 2 or more
  double trust_coefficient = 1e-3;  ///< η
};

/// Gradient descent with momentum m: v ← m v + lr · trust · (g + decay · w), w ← w − v. For tensors of rank 2
/// or more trust is η ‖w‖ / (‖g‖ + decay · ‖w‖), or 1 where that is 0 / 0 or w is 0. Others (biases,
/// parameters of norms) have neither decay nor trust ratio. A step is three passes over all parameters, none
/// of which waits for the host: prepare_step() and apply() can be used with a captured graph, as those of any
/// FusedOptimizer. Norms are summed in f64 in a fixed order. Its state is "<parameter>.momentum" unless the
/// momentum is 0; options().kind is sgd.
class Lars : public FusedOptimizer {
 public:
  /// Throws Error for options out of range, and as Optimizer does.
  explicit Lars(NamedTensors parameters, const LarsOptions& options = {});
  ~Lars() override;

  double trust_coefficient() const { return trust_coefficient_; }

  /// Null: the engines for perceptrons apply rules that need no norms.
  FusedOptimizer* fused() override { return nullptr; }

 private:
  void update_parameters(std::span<const std::byte* const> gradients, const Tensor& hyperparameters) override;

  double trust_coefficient_;
  std::unique_ptr<detail::LarsWorkspace> workspace_;
};

/// LARS with the weight decay and the momentum of `options`: its factory in optimizers().
std::unique_ptr<Optimizer> make_lars(NamedTensors parameters, const OptimizerOptions& options,
                                     double learning_rate);

}  // namespace tandem
