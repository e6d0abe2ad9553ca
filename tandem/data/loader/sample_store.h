// The samples of a data set as loaders see them: images in memory, photographs, or any user's Dataset behind
// one interface. A store is shared and constant; each worker gets a reader of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/data/batches.h"
#include "tandem/data/dataset.h"
#include "tandem/data/loader/sample_reader.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/process/shared_memory.h"

namespace tandem {
class BatchSource;
class Timeline;
struct LoaderOptions;
}  // namespace tandem

namespace tandem::detail {

// What the shared memory of a worker process holds.
enum class SampleFormat : std::uint8_t {
  array,   // labels and images
  photos,  // a PhotoTable
  factory  // a DatasetFactoryCall
};

class SampleStore {
 public:
  virtual ~SampleStore() = default;

  virtual std::int64_t count() const = 0;
  // A path, or "sample 17".
  virtual std::string describe(std::int32_t sample) const = 0;
  // The size of the transformed images. Error when the transform cannot be applied.
  virtual ImageSize image_size(const Transform& transform) const = 0;
  // `size` as image_size() gives it. The reader must not outlive the store.
  virtual std::unique_ptr<SampleReader> make_reader(const Transform& transform,
                                                    const ImageSize& size) const = 0;

  virtual SampleFormat format() const = 0;
  // The memory from which worker processes read the first `samples` samples: attach_reader(). Error when they
  // cannot.
  virtual std::shared_ptr<const SharedMemory> worker_memory(std::int64_t samples) const = 0;

  // Samples known to be unreadable.
  virtual std::span<const BadSample> bad() const { return {}; }
  // Whether an unreadable sample is an Error. Otherwise another one replaces it.
  virtual bool fails_on_bad() const { return false; }

  // A source that transforms the images on their way to `device` without workers, on the device itself: null
  // when there is none for this transform and device. The timeline may be null.
  virtual std::unique_ptr<BatchSource> device_source(const BatchPlan& plan, const Transform& transform,
                                                     Device device, Timeline* timeline) const;

  // A source whose images a JPEG engine of `device` decodes and the device transforms: null when there is
  // none for these images, this transform or this device.
  virtual std::unique_ptr<BatchSource> engine_source(const BatchPlan& plan, const Transform& transform,
                                                     Device device, const LoaderOptions& options) const;
};

// Images of one size, on the CPU. Error as check_image_set().
std::shared_ptr<const SampleStore> sample_store(const ImageSet& images);
std::shared_ptr<const SampleStore> sample_store(std::shared_ptr<const PhotoStore> photos);
// Any data set, through its virtual functions.
std::shared_ptr<const SampleStore> sample_store(std::shared_ptr<const Dataset> dataset);

// The reader of a worker process.
struct AttachedSamples {
  SampleFormat format = SampleFormat::array;
  Transform transform;
  ImageSize size;  // of the transformed images
  std::int64_t samples = 0;
};
std::unique_ptr<SampleReader> attach_reader(const AttachedSamples& samples,
                                            std::span<const std::byte> memory);

}  // namespace tandem::detail
