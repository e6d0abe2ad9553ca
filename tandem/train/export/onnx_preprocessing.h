// The way from a decoded image to the input of a network, as ONNX nodes. Photographs are resized by the
// integer arithmetic of image/resize.h, so the pixels equal Tandem's (and Pillow's) to the byte in any
// runtime. ONNX's own Resize does not: it treats borders differently, by up to 20 levels.
#pragma once

#include <string>

#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/train/model_file.h"

namespace tandem {

// Adds the nodes. `image` is u8 [height, width, 3]; the result is f32 [1, channels, height, width],
// normalized. Throws Error for a transform that has no form in ONNX, such as a random one.
std::string add_preprocessing(OnnxBuilder& builder, const ModelInfo& info, const std::string& image);

// "resize to 224x224 (bilinear, antialiased, as Pillow), …"
std::string describe_preprocessing(const ModelInfo& info);

}  // namespace tandem
