// Models in 8-bit integers: made of a trained model and images of its training set, and compared with it on
// images that were held out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/nn/activation_histogram.h"
#include "tandem/train/model_file.h"

namespace tandem {

struct QuantizeOptions {
  std::int64_t images = 256;  // of the training set, to choose the ranges of activations
  // None: the one whose outputs for these images differ least from those in fp32.
  std::optional<detail::CalibrationMethod> method = {};
  std::string from = {};  // folder or archive with the data set's files, if the cache does not have them
  std::string command = {};
};

// "auto", "max", "percentile" or "entropy"; throws Error for others.
std::optional<detail::CalibrationMethod> parse_calibration_method(const std::string& name);

// A model that save_model() stores and load_model() reads; its info.quantization has the comparison on the
// test images of `data`. The model must be on the CPU. Throws Error for a model that is not a ResNet or in
// 8-bit integers already, without images, and for images of another size or with other classes.
Model quantize_model(Model& model, const std::string& data, const QuantizeOptions& options = {});

// A few lines.
std::string quantization_text(const QuantizationInfo& quantization);

}  // namespace tandem
