// Copying values between tensors that belong together by name: how a state is loaded.
#pragma once

#include "tandem/tensor/named_tensor.h"

namespace tandem {

// Copies each of `from` into the memory of its namesake in `to`, between devices where they differ. Every
// name of one must be in the other once, with the same shape and dtype; otherwise an Error lists what is
// missing, unexpected or different, and nothing is changed.
void copy_named(const char* op, const NamedTensors& to, const NamedTensors& from);

}  // namespace tandem
