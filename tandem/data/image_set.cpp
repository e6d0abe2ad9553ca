#include "tandem/data/image_set.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/check.h"

namespace tandem {

ImageSet ImageSet::slice(std::int64_t begin, std::int64_t end) const {
  check(begin >= 0 && begin <= end && end <= count(),
        "[image set] expected a range of images within 0 to {}, got {} to {}", count(), begin, end);
  if (!images.defined()) return *this;
  return {.images = images.slice(0, begin, end), .labels = labels.slice(0, begin, end), .classes = classes};
}

ImageSet ImageSet::select(std::span<const std::int64_t> rows) const {
  const auto total = static_cast<std::int64_t>(rows.size()), bytes = image_size();
  const Tensor from = images.contiguous();
  ImageSet set{.images = Tensor::empty({total, images.size(1), images.size(2), images.size(3)}, DType::u8),
               .labels = Tensor::empty({total}, DType::i32),
               .classes = classes};
  const std::vector<std::int32_t> all_labels = labels.to_vector<std::int32_t>();
  for (std::int64_t i = 0; i < total; ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    check(row >= 0 && row < count(), "[image set] expected rows from 0 to below {}, got {}", count(), row);
    std::memcpy(set.images.data<std::uint8_t>() + i * bytes, from.data<std::uint8_t>() + row * bytes,
                static_cast<std::size_t>(bytes));
    set.labels.data<std::int32_t>()[i] = all_labels[static_cast<std::size_t>(row)];
  }
  return set;
}

ImageSet ImageSet::to(Device device) const {
  if (!images.defined()) return *this;
  return {.images = images.to(device), .labels = labels.to(device), .classes = classes};
}

void check_image_set(const ImageSet& set, const std::string& name) {
  check(set.images.defined() && set.labels.defined(), "[{}] expected images and labels, got none", name);
  check(set.images.dtype() == DType::u8 && set.images.rank() == 4,
        "[{}] expected u8 images of shape (count, height, width, channels), got {} of shape {}", name,
        name_of(set.images.dtype()), set.images.shape().to_string());
  check(set.labels.dtype() == DType::i32 && set.labels.rank() == 1,
        "[{}] expected i32 labels of shape (count), got {} of shape {}", name, name_of(set.labels.dtype()),
        set.labels.shape().to_string());
  check(set.images.size(0) == set.labels.size(0),
        "[{}] expected a label for each image, got {} for {} images", name, set.labels.size(0),
        set.images.size(0));
  check(set.images.device() == set.labels.device(),
        "[{}] expected images and labels on the same device, got {} and {}", name,
        set.images.device().to_string(), set.labels.device().to_string());
  check(!set.classes.empty(), "[{}] expected at least one class, got none", name);
  const std::vector<std::int32_t> labels = set.labels.to_vector<std::int32_t>();
  const auto classes = static_cast<std::int64_t>(set.classes.size());
  const auto stray = std::find_if(labels.begin(), labels.end(),
                                  [&](std::int32_t label) { return label < 0 || label >= classes; });
  check(stray == labels.end(), "[{}] expected labels from 0 to {}, got {} for image {}", name, classes - 1,
        stray == labels.end() ? 0 : *stray, stray - labels.begin());
}

}  // namespace tandem
