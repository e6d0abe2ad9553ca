// Writes ONNX files.
#pragma once

#include <string>

#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

// The bytes of the file. Throws Error if they are 2^31 or more, which protocol buffers do not allow.
std::string to_onnx(const OnnxModel& model);

}  // namespace tandem
