#include "tandem/data/loader/batch_source.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/gather_kernel.h"

namespace tandem {

void fill_block(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& all_labels,
                const Tensor& samples, const Tensor& labels) {
  fill_order(plan, epoch, first, samples);
  on_backend(samples.device(), "batches", [&]<Backend B>() {
    detail::gather_rows_kernel<B>({.dtype = DType::i32,
                                   .data = samples.bytes(),
                                   .count = samples.numel(),
                                   .table_rows = all_labels.numel()},
                                  labels.bytes(), all_labels.bytes(), size_of(DType::i32),
                                  current_stream(samples.device()));
  });
}

std::int64_t block_positions(const BatchPlan& plan, std::int64_t wanted) {
  const std::int64_t batch = plan.local_batch_size();
  return std::min(plan.local_positions(), std::max<std::int64_t>(1, wanted / batch) * batch);
}

InMemorySource::InMemorySource(const ImageSet& images, const BatchPlan& plan)
    : BatchSource(plan), images_(images) {
  expect(images.count() == plan.samples);
  constexpr std::int64_t wanted = 1 << 20;
  samples_ = Tensor::empty({block_positions(plan, wanted)}, DType::i32, device());
  labels_ = Tensor::empty(samples_.shape(), DType::i32, device());
}

SourceBlock InMemorySource::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  const std::int64_t count = std::min({samples_.numel(), max_count, plan_.local_positions() - first});
  expect(first % plan_.local_batch_size() == 0 && count > 0);
  fill_block(plan_, epoch, first, images_.labels, samples_.slice(0, 0, count), labels_.slice(0, 0, count));
  return {.count = count,
          .images = images_.images.data<std::uint8_t>(),
          .image_count = images_.count(),
          .samples = samples_.data<std::int32_t>(),
          .labels = labels_.data<std::int32_t>()};
}

}  // namespace tandem
