// The idx format of MNIST: element type, rank, sizes and elements, all big-endian.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Parses an idx file, raw or gzip-compressed (detected by its content), of u8, i32, f32 or f64 and at most 2
/// GiB. Throws Error for an invalid, truncated or overlong file; `name` is the file name in its message.
Tensor parse_idx(std::string_view bytes, const std::string& name);
/// parse_idx() of a file.
Tensor read_idx(const std::filesystem::path& path);

/// Writes an uncompressed file atomically. Throws Error unless the tensor is u8 of rank 1 or more.
void write_idx(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tandem
