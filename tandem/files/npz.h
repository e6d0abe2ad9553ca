// Reads NumPy arrays: .npy files, and .npz archives of them. Arrays of objects, which are pickles, are
// refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/shape.h"

namespace tandem {

struct NpyArray {
  std::string name;       // without ".npy"
  std::string_view type;  // as safetensors calls it: "F16"
  Shape shape;
  std::string bytes;  // row-major, little-endian
};

// Throws Error for an array that is truncated, not little-endian, in Fortran's order, or not of numbers.
NpyArray parse_npy(std::string_view bytes, const std::string& name);
// The arrays of an archive in its order. Throws Error as parse_npy() and read_zip() do.
std::vector<NpyArray> read_npz(std::string_view archive, const std::string& name);

}  // namespace tandem
