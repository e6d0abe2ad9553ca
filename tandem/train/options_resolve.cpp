// What a transform means depends on the data: this is the one place that decides it.
#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/options.h"

namespace tandem {

Transform TrainOptions::photo_transform() const {
  check(transform.empty() || transform.resizes(),
        "[train] expected a recipe for photographs, such as photo or 'crop, flip 0.5', got '{}'",
        transform.to_string());
  return transform.empty() ? photo_evaluation_transform()
                           : transform.for_photos(static_cast<int>(image_size));
}

Transform TrainOptions::photo_evaluation_transform() const {
  return tandem::evaluation_transform(static_cast<int>(image_size), fit);
}

TrainOptions resolve_options(TrainOptions options, bool photographs) {
  if (photographs) {
    options.validation_transform = options.photo_evaluation_transform();
    options.transform = options.photo_transform();
  } else {
    options.transform = options.transform.for_one_size();
  }
  if (photographs || models().get(options.model).normalized) options.norm = imagenet_norm;
  check(
      photographs || !options.transform.resizes(),
      "[train] expected a recipe for images of one size, such as digits or 'rotate -12 12, shift -2 2', got "
      "one for photographs: '{}'",
      options.transform.to_string());
  return options;
}

}  // namespace tandem
