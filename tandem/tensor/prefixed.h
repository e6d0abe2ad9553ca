// Several state dicts in one list of tensors, told apart by prefixes such as "model.".
#pragma once

#include <string>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

inline void add_prefixed(NamedTensors& all, const std::string& prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) all.push_back({prefix + name, tensor});
}

// Those with the prefix, without it.
inline NamedTensors take_prefixed(const std::string& prefix, const NamedTensors& all) {
  NamedTensors taken;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) taken.push_back({name.substr(prefix.size()), tensor});
  return taken;
}

}  // namespace tandem
