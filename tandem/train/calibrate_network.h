// A network in 8-bit integers, with ranges of activations that suit some images.
#pragma once

#include <memory>
#include <optional>

#include "tandem/nn/activation_histogram.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/train/image_input.h"

namespace tandem {

struct CalibratedNetwork {
  detail::CalibrationMethod method;
  std::unique_ptr<QuantizedResNet> network;
};

// What the methods are compared by: the squared differences of these values from fp32, summed over the
// images.
enum class ComparedBy { logits, features };

// Of a network in evaluation mode on the CPU, and u8 images. Without a method, the one that differs least.
CalibratedNetwork calibrate_network(ResNet& network, const Tensor& images, const ImageInput& input,
                                    const std::optional<detail::CalibrationMethod>& method,
                                    ComparedBy compared);

}  // namespace tandem
