// Which optimizer, and its hyperparameters other than the learning rate.
#pragma once

namespace tandem {

enum class OptimizerKind { sgd, adam, adamw };

/// Hyperparameters of any optimizer; each kind reads the ones it has. The formulas are PyTorch's.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0;      ///< sgd
  bool nesterov = false;    ///< sgd; needs momentum
  double weight_decay = 0;  ///< sgd and adam: added to the gradient; adamw: decoupled, shrinks the weight
  double beta1 = 0.9;       ///< adam, adamw
  double beta2 = 0.999;     ///< adam, adamw
  double epsilon = 1e-8;    ///< adam, adamw

  /// State tensors per parameter: 0 or 1 (momentum) for sgd, 2 for adam and adamw.
  constexpr int state_count() const { return kind == OptimizerKind::sgd ? (momentum != 0 ? 1 : 0) : 2; }
};

}  // namespace tandem
