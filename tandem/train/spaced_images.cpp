#include "tandem/train/spaced_images.h"

#include <algorithm>
#include <cstdint>

#include "tandem/data/loader/sample_store.h"

namespace tandem {

Tensor spaced_images(const TrainingImages& images, const Transform& transform, std::int64_t max_count) {
  const std::int64_t count = std::min(images.count(), max_count);
  const auto store = images.dataset->sample_store();
  const ImageSize size = store->image_size(transform);
  const auto reader = store->make_reader(transform, size);
  const Tensor chosen = Tensor::empty({count, size.height, size.width, size.channels}, DType::u8);
  std::int64_t read = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto sample = static_cast<std::int32_t>(i * images.count() / count);
    BadSample bad;
    const RandomKey key{.sample = static_cast<std::uint32_t>(sample)};
    if (!reader->is_missing(sample) &&
        reader->read(sample, key, chosen.data<std::uint8_t>() + read * size.bytes(), bad))
      ++read;
  }
  return chosen.slice(0, 0, read);
}

}  // namespace tandem
