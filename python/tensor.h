// tandem.Tensor: exchanges tensors with NumPy and, by DLPack, with other libraries, without copies.
#pragma once

#include <pybind11/pybind11.h>

namespace tandem {

void add_tensor(pybind11::module_& module);

}  // namespace tandem
