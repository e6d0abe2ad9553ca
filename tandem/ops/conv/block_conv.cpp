#include "tandem/ops/conv/block_conv.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "tandem/core/parallel_shares.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/band_product.h"
#include "tandem/ops/conv/conv_parts.h"
#include "tandem/ops/conv/pair_conv.h"

namespace tandem::detail {
namespace {

bool uses_pairs(const BlockConv& conv) {
  return !WindowBand(conv.plan, 1, 0).is_identity() && uses_pair_conv(conv);
}

// The units of a stage; see BandProduct.
class StageUnits {
 public:
  explicit StageUnits(const ChainStage& stage) {
    if (const auto* const conv = std::get_if<BlockConv>(&stage.work))
      product_ = std::make_unique<const BandProduct>(*conv);
    else
      lines_ = &std::get<ImageLines>(stage.work);
  }

  std::int64_t images() const { return product_ ? product_->images() : lines_->images; }
  std::int64_t units() const { return product_ ? product_->units() : lines_->images * lines_->lines; }
  std::int64_t scratch_bytes() const { return product_ ? product_->scratch_bytes() : lines_->scratch_bytes; }
  void run(IndexRange units, std::byte* scratch) const {
    product_ ? product_->run(units, scratch) : lines_->run(units, scratch);
  }
  IndexRange images_read(IndexRange units) const {
    return product_ ? product_->images_read(units) : images_of(units);
  }
  std::int64_t units_of_image(std::int64_t image) const {
    return product_ ? product_->units_of_image(image) : lines_->lines;
  }
  template <class F>
  void for_each_image_written(IndexRange units, const F& f) const {
    if (product_) return product_->for_each_image_written(units, f);
    const IndexRange images = images_of(units);
    for (std::int64_t image = images.begin; image < images.end; ++image)
      f(image,
        std::min(units.end, (image + 1) * lines_->lines) - std::max(units.begin, image * lines_->lines));
  }

 private:
  IndexRange images_of(IndexRange units) const {
    return {units.begin / lines_->lines, ceil_div(units.end, lines_->lines)};
  }

  std::unique_ptr<const BandProduct> product_;
  const ImageLines* lines_ = nullptr;
};

// For every stage of a chain and every image, how many units that write a part of it are done.
class ImageProgress {
 public:
  ImageProgress(std::size_t stages, std::int64_t images)
      : images_(static_cast<std::size_t>(images)), done_(stages * images_) {}

  void add(std::size_t stage, std::int64_t image, std::int64_t units) {
    count(stage, image).fetch_add(units, std::memory_order_release);
  }
  void wait(std::size_t stage, const StageUnits& units, IndexRange images) {
    for (std::int64_t image = images.begin; image < images.end; ++image) {
      const std::int64_t all = units.units_of_image(image);
      spin_until([&] { return count(stage, image).load(std::memory_order_acquire) == all; });
    }
  }

 private:
  std::atomic_ref<std::int64_t> count(std::size_t stage, std::int64_t image) {
    return std::atomic_ref(done_[stage * images_ + static_cast<std::size_t>(image)]);
  }

  std::size_t images_;
  RecycledVector<std::int64_t> done_;
};

void run_stage(const ChainStage& stage) {
  if (const auto* const conv = std::get_if<BlockConv>(&stage.work)) return block_conv2d(*conv);
  const auto& lines = std::get<ImageLines>(stage.work);
  const Buffer scratch = make_scratch<std::byte>(thread_count() * lines.scratch_bytes);
  parallel_shares(lines.images * lines.lines, [&](IndexRange range, std::int64_t thread) {
    lines.run(range, scratch.data() + thread * lines.scratch_bytes);
  });
}

}  // namespace

std::int64_t block_conv_weight_bytes(const Conv2dPlan& plan, MatrixType type) {
  return block_conv_panels(plan, type).bytes();
}

void pack_block_conv_weight(const Conv2dPlan& plan, MatrixType type, std::byte* packed,
                            const std::byte* weight) {
  const WindowSegments segments = padded_segments(plan, type);
  pack_panels(block_conv_panels(plan, type), packed,
              {.data = weight,
               .column_stride = segments.count * segments.elements * element_size(type),
               .segment_stride = segments.elements * element_size(type),
               .segment_elements = segments.elements});
}

void block_conv2d(const BlockConv& conv) {
  if (uses_pairs(conv)) return pair_conv2d(conv);
  const BandProduct product(conv);
  const Buffer scratch = make_scratch<std::byte>(thread_count() * product.scratch_bytes());
  parallel_shares(product.units(), [&](IndexRange units, std::int64_t thread) {
    product.run(units, scratch.data() + thread * product.scratch_bytes());
  });
}

void block_conv_chain(std::span<const ChainStage> chain) {
  const auto has_pairs = [](const ChainStage& stage) {
    const auto* const conv = std::get_if<BlockConv>(&stage.work);
    return conv && uses_pairs(*conv);
  };
  if (std::ranges::any_of(chain, has_pairs)) {
    for (const ChainStage& stage : chain) run_stage(stage);
    return;
  }
  RecycledVector<StageUnits> stages;
  RecycledVector<std::int64_t> counts;
  std::int64_t scratch_bytes = 0;
  for (const ChainStage& each : chain) {
    const StageUnits& stage = stages.emplace_back(each);
    counts.push_back(stage.units());
    scratch_bytes = std::max(scratch_bytes, stage.scratch_bytes());
  }
  const Buffer scratch = make_scratch<std::byte>(thread_count() * scratch_bytes);
  ImageProgress progress(chain.size(), chain.empty() ? 0 : stages.front().images());
  parallel_stages(counts, [&](std::size_t i, IndexRange units, std::int64_t thread) {
    const IndexRange images = stages[i].images_read(units);
    for (const std::optional<std::size_t>& before : {chain[i].input, chain[i].residual})
      if (before) progress.wait(*before, stages[*before], images);
    stages[i].run(units, scratch.data() + thread * scratch_bytes);
    stages[i].for_each_image_written(
        units, [&](std::int64_t image, std::int64_t count) { progress.add(i, image, count); });
  });
}

}  // namespace tandem::detail
