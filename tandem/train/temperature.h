// Temperature scaling (Guo et al. 2017): one number that makes probabilities agree with how often the model
// is right, and changes no prediction.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

/// Bounds of fit_temperature(): for logits that are right for every image, or for none, there is no minimum.
inline constexpr double min_temperature = 0.05, max_temperature = 20;

/// The temperature by which logits (images × classes, row-major) are divided before the softmax, so that the
/// mean negative log-likelihood of the labels is smallest. Throws Error without images, and for logits that
/// are not finite.
double fit_temperature(std::span<const float> logits, std::span<const std::int32_t> labels,
                       std::int64_t classes);

}  // namespace tandem
