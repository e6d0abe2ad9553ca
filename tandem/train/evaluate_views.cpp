#include "tandem/train/evaluate_views.h"

#include <numeric>

#include "tandem/augment/augment.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluator.h"

namespace tandem {
namespace {

// Moved by `pixels` to the left and upwards, then mirrored.
Recipe view(int pixels, bool mirrored) {
  const Bounds distance{static_cast<double>(pixels), static_cast<double>(pixels)};
  std::vector<AugmentStep> steps;
  if (pixels != 0) steps.push_back(random_reflected_shift(distance, distance));
  if (mirrored) steps.push_back(random_flip(1));
  return compose(steps);
}

Tensor images_of(const TestView& view, const Tensor& images) {
  if (view.recipe.empty()) return images;
  std::vector<std::int32_t> all(static_cast<std::size_t>(images.size(0)));
  std::iota(all.begin(), all.end(), 0);
  const Tensor samples = Tensor::from(all, {images.size(0)}, images.device());
  Tensor seen = Tensor::empty(images.shape(), DType::u8, images.device());
  augment_batch(view.recipe, 0, 0, images, samples, seen);
  return seen;
}

}  // namespace

std::vector<TestView> views_of(TestViews views) {
  if (views == TestViews::one) return {{}};
  if (views == TestViews::flip) return {{view(0, false), 0.5}, {view(0, true), 0.5}};
  return {{view(0, false), 0.25}, {view(0, true), 0.25},    {view(1, false), 0.125},
          {view(1, true), 0.125}, {view(-1, false), 0.125}, {view(-1, true), 0.125}};
}

Evaluation evaluate_views(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input,
                          TestViews views) {
  if (set.count() == 0) return evaluate(model, set, loss, input);
  const NoGrad no_grad;
  Tensor mean;
  for (const TestView& view : views_of(views)) {
    const Tensor outputs =
        multiply(cast(compute_outputs(model, images_of(view, set.images), input), DType::f32), view.weight);
    mean = mean.defined() ? add(mean, outputs) : outputs;
  }
  return to_host({.outputs = mean,
                  .predictions = argmax(mean, 1),
                  .loss = compute_loss(loss, mean, set.labels.to(mean.device()))},
                 set.labels.to_vector<std::int32_t>());
}

}  // namespace tandem
