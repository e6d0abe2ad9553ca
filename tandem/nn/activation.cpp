#include "tandem/nn/activation.h"

namespace tandem {

Tensor ActivationLayer::forward(const Tensor& x) {
  return activate(activation_, x);
}

}  // namespace tandem
