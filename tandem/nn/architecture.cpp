#include "tandem/nn/architecture.h"

#include <fmt/ranges.h>

#include "tandem/nn/model_registry.h"

namespace tandem {

bool Architecture::expects_flat_input() const {
  const ModelRow* const row = models().find(model);
  return row && row->flat_input;
}

std::string Architecture::to_string() const {
  if (!expects_flat_input()) return fmt::format("{} with {} classes", model, classes);
  return fmt::format("{} {} {}", model, fmt::join(layers, ","), name_of(activation));
}

}  // namespace tandem
