// The optimizers that can be named, as in `--optimizer adam`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tandem/core/registry.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"

namespace tandem {

/// One optimizer. `make` reads the members of OptimizerOptions that the optimizer has, except `kind`.
struct OptimizerRow {
  std::string name;
  std::string summary;
  bool has_momentum = false;  ///< reads OptimizerOptions::momentum
  bool has_nesterov = false;  ///< reads OptimizerOptions::nesterov
  std::function<std::unique_ptr<Optimizer>(NamedTensors parameters, const OptimizerOptions& options,
                                           double learning_rate)>
      make;
};

/// sgd, adam, adamw and the registered ones.
const Registry<OptimizerRow>& optimizers();
/// Adds an optimizer; throws Error for a name that is taken. Not thread-safe.
void register_optimizer(OptimizerRow row);
/// The optimizer of that name; throws Error for an unknown name, and as its constructor does.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, NamedTensors parameters,
                                          const OptimizerOptions& options, double learning_rate);

}  // namespace tandem
