// Whole data sets in memory, for evaluation: every sample read once, in parallel, and transformed.
#pragma once

#include "tandem/augment/transform.h"
#include "tandem/data/dataset.h"
#include "tandem/data/image_set.h"
#include "tandem/data/named_set.h"

namespace tandem {

/// All images of a data set, transformed, in its order; without photographs that cannot be read, unless the
/// data set fails on those. A transform with random arguments gives the same images each time. An
/// ImageDataset without a transform shares its memory. Throws Error when the images would need more than half
/// of the free memory, when none can be read, when their sizes differ and the transform does not resize, for
/// labels without a class, and for exceptions of the data set, with the sample.
ImageSet materialize(const Dataset& dataset, const Transform& transform = {});

/// The same with the description of each image, and the photographs that could not be read.
PhotoSet materialize_named(const Dataset& dataset, const Transform& transform);

}  // namespace tandem
