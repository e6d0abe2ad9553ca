// Two views of each image of a step: what contrastive training compares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/tensor/tensor.h"
#include "tandem/train/pretrain/options.h"
#include "tandem/train/training_data.h"

namespace tandem::detail {

class ViewSource {
 public:
  virtual ~ViewSource() = default;

  // The number of different images; 0: any number.
  virtual std::int64_t image_count() const = 0;
  // Work of a step on the host, and what a graph cannot repeat. Steps are consecutive.
  virtual void prepare(std::int64_t step) = 0;
  // Work of a step that a graph can repeat: it reads what prepare() wrote on the device.
  virtual void render() {}

  // Of the last step: u8 (2 · images, size, size, 3); rows i and i + images are views of the same image.
  virtual const Tensor& images() const = 0;
  // What is known of each image: i32 (images, attributes), below attribute_sizes(). Undefined if nothing is.
  virtual Tensor attributes() const { return {}; }
  virtual std::vector<std::int64_t> attribute_sizes() const { return {}; }

  virtual std::string description() const = 0;
  // Photographs that could not be read so far.
  virtual std::vector<SkippedSample> skipped() const { return {}; }
};

// Scenes, or the photographs below a folder. Sets options.batch_size if it is 0. Throws Error for a folder
// without two images that can be read, and for fewer images than a batch has.
std::unique_ptr<ViewSource> make_view_source(PretrainOptions& options, const MessageFunction& on_message);

}  // namespace tandem::detail
