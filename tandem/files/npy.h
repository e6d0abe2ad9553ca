// Tensors as files for other tools: NumPy's .npy, and CSV for matrices.
#pragma once

#include <string>

#include "tandem/tensor/tensor.h"

namespace tandem {

// The bytes of a .npy file, version 1.0, row by row, that numpy.load() reads. Throws Error unless the tensor
// is f32. Copies it from its device.
std::string to_npy(const Tensor& tensor);

// One line per row, values separated by commas, with as many digits as restore their bits. Throws Error
// unless the tensor is an f32 matrix.
std::string to_csv(const Tensor& matrix);

}  // namespace tandem
