// A safetensors file as parts for a PendingFile, without copying contiguous host tensors.
#pragma once

#include "tandem/core/write_file.h"
#include "tandem/files/safetensors.h"

namespace tandem {

// The same bytes as to_safetensors().
FileParts safetensors_parts(const TensorFile& file);

}  // namespace tandem
