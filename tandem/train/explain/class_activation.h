// Class activation maps: where in its input a convolutional network found what speaks for a class.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tandem/image/heat_map.h"
#include "tandem/nn/module.h"

namespace tandem {

/// How the channels of a layer are weighted by the gradient of the class's output.
enum class ActivationMethod : std::uint8_t {
  grad_cam,  ///< each channel by the mean of its gradient (Selvaraju et al. 2017)
  layer_cam  ///< each position by its own gradient where that is positive (Jiang et al. 2021): finer
};

/// "grad-cam" or "layer-cam"; throws Error for any other text.
ActivationMethod parse_activation_method(std::string_view text);
const char* name_of(ActivationMethod method);

/// The maps of the outputs `classes`, one per image: (n, height, width) in f32 on the device of `x`, not
/// negative, in the size of the layer and not scaled. `x` is the model's normalized input (n, height, width,
/// channels), f32 or bf16. The layer is the last convolution with more than one position, with the
/// normalization, the residual sum and the activation that follow it. Runs in evaluation mode; the model's
/// mode and the gradients of its parameters are restored. Undefined for a model without such a convolution.
/// Throws Error for a class out of range. Not safe to call concurrently on one model.
Tensor class_activation_maps(Module& model, const Tensor& x, std::span<const std::int64_t> classes,
                             ActivationMethod method = ActivationMethod::grad_cam);

/// The first map of (n, height, width) over an image of these sides, scaled to a maximum of 1.
HeatMap scaled_heat(const Tensor& maps, std::int64_t image_height, std::int64_t image_width);

}  // namespace tandem
