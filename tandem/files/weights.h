// Weight files of any supported format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/files/safetensors.h"

namespace tandem {

enum class WeightFormat { safetensors, pth };

/// By the content, never by the file name. Everything but safetensors is pth, whose parser reports other
/// formats.
WeightFormat weight_format(std::string_view bytes);

/// Reads a file of either format. Throws Error if it is invalid.
TensorFile read_weights(const std::filesystem::path& path);
/// The same for bytes in memory; `name` is the file name in error messages.
TensorFile parse_weights(std::string_view bytes, const std::string& name);

/// Throws an Error that names the first NaN or infinity, if there is one. `name` is the file name in its
/// message.
void check_finite(const TensorFile& file, const std::string& name);

}  // namespace tandem
