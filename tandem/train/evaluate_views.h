// Test-time augmentation of small images on their device: the weighted mean of the outputs for several views
// of an image.
#pragma once

#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/test_views.h"

namespace tandem {

// A view and its weight; those of all views sum to 1.
struct TestView {
  Recipe recipe;
  double weight = 1;
};
std::vector<TestView> views_of(TestViews views);

// evaluate() with the mean of the outputs for all views. The images and the model are on one device.
Evaluation evaluate_views(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input,
                          TestViews views);

}  // namespace tandem
