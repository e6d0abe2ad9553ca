// Flattening as a module.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/flatten.h"

namespace tandem {

/// flatten() as a module: (n, …) → (n, product of the other sizes).
class Flatten : public StatelessModule {
 public:
  Tensor forward(const Tensor& x) override { return flatten(x); }
};

}  // namespace tandem
