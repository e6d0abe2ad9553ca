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

// For every convolution of a chain and every image, how many units that write a part of it are done.
class ImageProgress {
 public:
  ImageProgress(std::size_t convs, std::int64_t images)
      : images_(static_cast<std::size_t>(images)), done_(convs * images_) {}

  void add(std::size_t conv, std::int64_t image, std::int64_t units) {
    count(conv, image).fetch_add(units, std::memory_order_release);
  }
  void wait(std::size_t conv, const BandProduct& product, IndexRange images) {
    for (std::int64_t image = images.begin; image < images.end; ++image) {
      const std::int64_t all = product.units_of_image(image);
      spin_until([&] { return count(conv, image).load(std::memory_order_acquire) == all; });
    }
  }

 private:
  std::atomic_ref<std::int64_t> count(std::size_t conv, std::int64_t image) {
    return std::atomic_ref(done_[conv * images_ + static_cast<std::size_t>(image)]);
  }

  std::size_t images_;
  RecycledVector<std::int64_t> done_;
};

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

void block_conv_chain(std::span<const ChainedConv> chain) {
  if (std::ranges::any_of(chain, [](const ChainedConv& each) { return uses_pairs(each.conv); })) {
    for (const ChainedConv& each : chain) block_conv2d(each.conv);
    return;
  }
  RecycledVector<std::unique_ptr<const BandProduct>> products;
  RecycledVector<std::int64_t> counts;
  std::int64_t scratch_bytes = 0;
  for (const ChainedConv& each : chain) {
    const BandProduct& product = *products.emplace_back(std::make_unique<BandProduct>(each.conv));
    counts.push_back(product.units());
    scratch_bytes = std::max(scratch_bytes, product.scratch_bytes());
  }
  const Buffer scratch = make_scratch<std::byte>(thread_count() * scratch_bytes);
  ImageProgress progress(chain.size(), chain.empty() ? 0 : chain.front().conv.plan.images);
  parallel_stages(counts, [&](std::size_t i, IndexRange units, std::int64_t thread) {
    const BandProduct& product = *products[i];
    const IndexRange images = product.images_read(units);
    for (const std::optional<std::size_t>& before : {chain[i].input, chain[i].residual})
      if (before) progress.wait(*before, *products[*before], images);
    product.run(units, scratch.data() + thread * scratch_bytes);
    product.for_each_image_written(
        units, [&](std::int64_t image, std::int64_t count) { progress.add(i, image, count); });
  });
}

}  // namespace tandem::detail
