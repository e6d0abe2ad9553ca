#include "tandem/nn/activation.h"

#include "tandem/core/check.h"

namespace tandem {

Tensor ActivationLayer::forward(const Tensor& x) {
  switch (activation_) {
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::relu:
      return relu(x);
  }
  expect(false);
  return x;
}

}  // namespace tandem
