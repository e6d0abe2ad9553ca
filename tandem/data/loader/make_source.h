// The choice of a source for a data set, a transform and a device.
#pragma once

#include <memory>

#include "tandem/augment/transform.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/sample_store.h"

namespace tandem {

// Where the images of a data set are transformed: where they are used, if the store can (always for images
// that need no transform, otherwise on a GPU with `on_gpu`, or on the CPU without workers); else by the GPU
// that decodes them, with `on_gpu`, a JPEG engine and thread workers; else by workers.
// With any source a position of an epoch holds the same bytes.
std::unique_ptr<BatchSource> make_source(std::shared_ptr<const detail::SampleStore> samples,
                                         const BatchPlan& plan, const Transform& transform, Device device,
                                         const LoaderOptions& options, bool on_gpu = true);

}  // namespace tandem
