// Copies values between tensors of the same name: how state dicts are loaded.
#pragma once

#include "tandem/tensor/named_tensor.h"

namespace tandem {

// Copies each tensor of `from` into the memory of the tensor with its name in `to`, across devices if needed.
// Both must have the same distinct names, with equal shapes and dtypes. Otherwise throws an Error that lists
// missing, unexpected, repeated and different tensors, and changes nothing.
void copy_named(const char* op, const NamedTensors& to, const NamedTensors& from);

}  // namespace tandem
