// Weights from a file of any known format.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/files/safetensors.h"

namespace tandem {

enum class WeightFormat { safetensors, pth };

// By the content, never by the name. A file that is neither counts as pth, whose reader says what is wrong.
WeightFormat weight_format(std::string_view bytes);

TensorFile read_weights(const std::filesystem::path& path);
TensorFile parse_weights(std::string_view bytes, const std::string& name);

// Error that names the first tensor with a NaN or an infinity and the place of it; `name` is the file's.
void check_finite(const TensorFile& file, const std::string& name);

}  // namespace tandem
