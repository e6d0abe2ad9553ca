// The idx format of MNIST: a type, a rank, big-endian sizes, then the elements, big-endian too.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/tensor/tensor.h"

namespace tandem {

// Raw or gzip, told apart by the first bytes. u8, i32, f32 and f64; the sizes must fill the rest of the bytes
// exactly. `name` stands in errors. Unpacks at most 2 GiB.
Tensor parse_idx(std::string_view bytes, const std::string& name);
Tensor read_idx(const std::filesystem::path& path);

// u8 only, raw; atomic.
void write_idx(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tandem
