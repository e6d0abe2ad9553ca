// A convolution by blocks (block_conv.h), divided into units that threads compute in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/core/index_range.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/conv_parts.h"
#include "tandem/ops/conv/window_band.h"

namespace tandem::detail {

class BandProduct {
 public:
  // For thread_count() threads. `conv` must outlive it.
  explicit BandProduct(const BlockConv& conv);
  BandProduct(const BandProduct&) = delete;
  BandProduct& operator=(const BandProduct&) = delete;

  std::int64_t images() const { return conv_.plan.images; }
  std::int64_t units() const { return blocks_ * parts_; }
  // Of one thread: the same for most layers, so that the memory stays in the caches of its thread.
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  // At most a thread's share of the units. Does not throw.
  void run(IndexRange units, std::byte* scratch) const;

  // From the first to the last image that the units read. Those that they write are among them.
  IndexRange images_read(IndexRange units) const;
  // How many units write a part of the image.
  std::int64_t units_of_image(std::int64_t image) const {
    return parts_ * blocks_of_image(image, {0, blocks_});
  }
  // Calls f(image, count) for the images of which `count` of the units write a part.
  template <class F>
  void for_each_image_written(IndexRange units, const F& f) const {
    for_each_part(units, blocks_, part_pairs_, [&](const ConvPart& part) {
      const IndexRange images = images_of({part.first_block * block_rows, part.last_block * block_rows});
      for (std::int64_t image = images.begin; image < images.end; ++image)
        f(image, blocks_of_image(image, {part.first_block, part.last_block}));
    });
  }

 private:
  // Blocks whose windows begin at `rows`.
  struct Chunk {
    IndexRange blocks;
    const std::byte* rows;
    std::byte* windows = nullptr;  // room for those of a block, where segments are joined
  };
  // The rows of a block that are output pixels.
  struct Runs {
    std::int64_t block = -1;
    std::int64_t count = 0;
    std::array<BlockRun, block_rows> runs;

    std::span<const BlockRun> used() const { return {runs.data(), static_cast<std::size_t>(count)}; }
    std::int64_t used_rows() const { return count == 0 ? 0 : used().back().row + used().back().count; }
  };

  void plan_scratch(std::int64_t max_blocks);
  void multiply_pixels(const ConvPart& part, std::byte* scratch) const;
  void multiply_bands(const ConvPart& part, std::byte* scratch) const;
  void multiply_blocks(const ConvPart& part, const Chunk& chunk) const;
  void prefetch_results(const Runs& runs, std::int64_t pair) const;
  void multiply_block(std::int64_t pair, const Runs& runs, const std::byte* rows,
                      std::int64_t row_stride) const;
  void gather(std::byte* windows, const std::byte* rows) const;
  void find_runs(Runs& runs, std::int64_t block) const;

  // The images to which rows belong.
  IndexRange images_of(IndexRange rows) const;
  // How many of the blocks have rows of the image.
  std::int64_t blocks_of_image(std::int64_t image, IndexRange blocks) const;
  std::int64_t in_place_blocks() const;
  std::int64_t image_bytes() const {
    return plan_.images * plan_.in.y * plan_.in.x * plan_.channels * element_size(panels_.type);
  }
  std::int64_t block_bytes() const { return block_rows * band_.row_stride(); }
  std::int64_t result_bytes() const { return static_cast<std::int64_t>(size_of(conv_.epilogue.dtype)); }
  std::int64_t window_bytes() const { return panels_.steps() * step_bytes; }

  const BlockConv& conv_;
  Conv2dPlan plan_;
  WindowBand band_;
  PackedPanels panels_;
  bool joins_;
  const BlockKernel& kernel_;
  std::int64_t image_rows_;  // rows of the product that belong to one image
  std::int64_t blocks_;
  std::int64_t parts_, part_pairs_;
  std::int64_t lines_ = 0, lines_of_plane_ = 0;  // of a band: of positions, and of a plane
  std::int64_t band_bytes_ = 0;                  // with what is read behind it
  std::int64_t scratch_bytes_ = 0;
  RecycledVector<std::int64_t> offsets_;   // of steps
  RecycledVector<std::int64_t> segments_;  // offsets of those that are joined
};

}  // namespace tandem::detail
