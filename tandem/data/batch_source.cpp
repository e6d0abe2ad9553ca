#include "tandem/data/batch_source.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/ops/gather.h"

namespace tandem {
namespace {

constexpr std::int64_t most_positions = 1 << 20;  // of a block, if a batch is not larger

}  // namespace

void fill_block(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& all_labels,
                const Tensor& samples, const Tensor& labels) {
  fill_order(plan, epoch, first, samples);
  on_backend(samples.device(), "batches", [&]<Backend B>() {
    gather_rows_kernel<B>(DType::i32, labels.bytes(), all_labels.bytes(), samples.bytes(), all_labels.numel(),
                          samples.numel(), size_of(DType::i32), current_stream(samples.device()));
  });
}

StoredImages::StoredImages(const ImageSet& images, const BatchPlan& plan)
    : BatchSource(plan), images_(images) {
  expect(images.count() == plan.samples);
  const std::int64_t positions = std::min(
      plan.positions(), std::max(plan.batch_size, most_positions / plan.batch_size * plan.batch_size));
  samples_ = Tensor::empty({positions}, DType::i32, device());
  labels_ = Tensor::empty({positions}, DType::i32, device());
}

SourceBlock StoredImages::take(std::int64_t epoch, std::int64_t first, std::int64_t most) {
  const std::int64_t count = std::min({samples_.numel(), most, plan_.positions() - first});
  expect(first % plan_.batch_size == 0 && count > 0);
  const SourceBlock block{.count = count,
                          .images = images_.images,
                          .samples = samples_.slice(0, 0, count),
                          .labels = labels_.slice(0, 0, count)};
  fill_block(plan_, epoch, first, images_.labels, block.samples, block.labels);
  return block;
}

}  // namespace tandem
