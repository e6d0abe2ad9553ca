#include "tandem/optim/optimizer_registry.h"

#include <utility>

#include "tandem/optim/fused_optimizer.h"
#include "tandem/optim/lars.h"
#include "tandem/optim/rmsprop.h"

namespace tandem {
namespace {

auto fused(OptimizerKind kind) {
  return [kind](NamedTensors parameters, OptimizerOptions options, double learning_rate) {
    options.kind = kind;
    return std::make_unique<FusedOptimizer>(std::move(parameters), options, learning_rate);
  };
}

Registry<OptimizerRow>& table() {
  static Registry<OptimizerRow> rows(
      "optimizer", {
                       {.name = "sgd",
                        .summary = "stochastic gradient descent",
                        .has_momentum = true,
                        .has_nesterov = true,
                        .make = fused(OptimizerKind::sgd)},
                       {.name = "adam", .summary = "Adam", .make = fused(OptimizerKind::adam)},
                       {.name = "adamw",
                        .summary = "Adam with decoupled weight decay",
                        .make = fused(OptimizerKind::adamw)},
                       {.name = "rmsprop",
                        .summary = "division by the root of a running mean of squares",
                        .has_momentum = true,
                        .make = make_rmsprop},
                       {.name = "lars",
                        .summary = "gradient descent with layer-wise adaptive rates, for large batches",
                        .has_momentum = true,
                        .make = make_lars},
                   });
  return rows;
}

}  // namespace

const Registry<OptimizerRow>& optimizers() {
  return table();
}

void register_optimizer(OptimizerRow row) {
  table().add(std::move(row));
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, NamedTensors parameters,
                                          const OptimizerOptions& options, double learning_rate) {
  return optimizers().get(name).make(std::move(parameters), options, learning_rate);
}

}  // namespace tandem
