#include "tandem/ops/conv/block_conv.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/index_range.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/conv_parts.h"
#include "tandem/ops/conv/pair_conv.h"
#include "tandem/ops/conv/window_band.h"

namespace tandem::detail {
namespace {

// Bytes of a band: it stays in the L2 cache beside a pair of panels.
constexpr std::int64_t band_bytes = 1 << 18;
constexpr std::int64_t max_cached_weight_bytes = 1 << 20;

// Images whose windows are single pixels are one long line.
Conv2dPlan as_one_line(Conv2dPlan plan) {
  plan.in = plan.out = {1, plan.images * plan.in.y * plan.in.x};
  plan.images = 1;
  return plan;
}

class BandProduct {
 public:
  BandProduct(const BlockConv& conv, const Conv2dPlan& plan)
      : conv_(conv),
        plan_(plan),
        band_(plan_, element_size(conv.epilogue.type), conv.padding_value),
        panels_(block_conv_panels(plan_, conv.epilogue.type)),
        kernel_(block_kernel(conv.epilogue.type, conv.isa)) {}

  void run() const {
    const std::int64_t blocks = ceil_div(band_.positions(), block_rows),
                       pairs = ceil_div(panels_.panels(), 2);
    const std::int64_t parts = choose_parts({.blocks = blocks,
                                             .pairs = pairs,
                                             .threads = thread_count(),
                                             .product_cycles = 64 * panels_.steps(),
                                             .block_bytes = block_rows * band_.row_stride(),
                                             .pair_bytes = 2 * panels_.panel_bytes()}),
                       part_pairs = pairs / parts;
    parallel_for(blocks * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      const BlockKernelScope tiles(kernel_);
      for_each_part({begin, end}, blocks, part_pairs, [&](const ConvPart& part) { multiply(part); });
    });
  }

 private:
  void multiply(const ConvPart& part) const {
    band_.is_identity() ? multiply_pixels(part) : multiply_bands(part);
  }

  // Windows of one pixel are read in place, but for the last blocks, which would read behind the images.
  void multiply_pixels(const ConvPart& part) const {
    const std::int64_t block_bytes = block_rows * band_.row_stride(),
                       in_place = std::max<std::int64_t>((image_bytes() - step_bytes) / block_bytes, 0);
    const std::int64_t chunk = std::max<std::int64_t>(band_bytes / block_bytes, 1);
    const RecycledVector<std::int64_t> offsets = step_offsets(band_, plan_, panels_, 0);
    for (std::int64_t first = part.first_block; first < std::min(part.last_block, in_place); first += chunk)
      multiply_blocks(part, {.blocks = {first, std::min({part.last_block, in_place, first + chunk})},
                             .rows = conv_.x + first * block_bytes,
                             .offsets = offsets.data()});
    const std::int64_t rest = std::max(part.first_block, in_place);
    if (rest >= part.last_block) return;
    const std::int64_t bytes = (part.last_block - rest) * block_bytes + step_bytes,
                       copied = std::min(image_bytes() - rest * block_bytes, bytes);
    const Buffer memory = make_scratch<std::byte>(bytes);
    std::memcpy(memory.data(), conv_.x + rest * block_bytes, static_cast<std::size_t>(copied));
    std::memset(memory.data() + copied, 0, static_cast<std::size_t>(bytes - copied));
    multiply_blocks(part,
                    {.blocks = {rest, part.last_block}, .rows = memory.data(), .offsets = offsets.data()});
  }

  void multiply_bands(const ConvPart& part) const {
    const std::int64_t line_bytes = band_.planes() * band_.line_bytes(), positions = band_.out_line();
    // What a block reads behind its last window, at most.
    const std::int64_t slack = block_rows * band_.row_stride() + band_.line_bytes() + step_bytes;
    const std::int64_t max_lines = (part.last_block - part.first_block) * block_rows / positions + 2;
    const std::int64_t lines = std::clamp(band_bytes / line_bytes - band_.plane_lines(0),
                                          ceil_div(block_rows, positions) + 1, max_lines);
    const std::int64_t chunk = (lines - 1) * positions / block_rows;
    const std::int64_t lines_of_plane = band_.plane_lines(lines);
    const Buffer memory = make_scratch<std::byte>(lines_of_plane * line_bytes + slack);
    const RecycledVector<std::int64_t> offsets = step_offsets(band_, plan_, panels_, lines_of_plane);
    std::memset(memory.data() + lines_of_plane * line_bytes, 0, step_bytes);
    for (std::int64_t first = part.first_block; first < part.last_block; first += chunk) {
      const std::int64_t first_line = first * block_rows / positions;
      band_.copy(memory.data(), conv_.x, first_line, lines_of_plane);
      const std::int64_t skipped = first * block_rows - first_line * positions;
      multiply_blocks(part, {.blocks = {first, std::min(part.last_block, first + chunk)},
                             .rows = memory.data() + skipped * band_.row_stride(),
                             .offsets = offsets.data()});
    }
  }

  std::int64_t image_bytes() const {
    return plan_.images * plan_.in.y * plan_.in.x * plan_.channels * element_size(panels_.type);
  }

  // Blocks whose windows begin at `rows`.
  struct Chunk {
    IndexRange blocks;
    const std::byte* rows;
    const std::int64_t* offsets;
  };

  void multiply_blocks(const ConvPart& part, const Chunk& chunk) const {
    const bool weight_stays =
        (part.last_pair - part.first_pair) * 2 * panels_.panel_bytes() <= max_cached_weight_bytes;
    for_each_product(part, chunk.blocks, weight_stays, [&](std::int64_t block, std::int64_t pair) {
      multiply_block(pair, block * block_rows,
                     chunk.rows + (block - chunk.blocks.begin) * block_rows * band_.row_stride(),
                     chunk.offsets);
    });
  }

  void multiply_block(std::int64_t pair, std::int64_t position, const std::byte* rows,
                      const std::int64_t* offsets) const {
    alignas(64) std::byte sums[block_rows * block_columns * 4];
    const std::int64_t columns = std::min(block_columns, plan_.filters - pair * block_columns);
    const std::int64_t used = used_rows(position);
    if (used == 0) return;
    // The results' lines arrive in the cache while the sums are computed.
    for_each_run(position, [&](std::int64_t, std::int64_t count, std::int64_t pixel) {
      const std::int64_t size = static_cast<std::int64_t>(size_of(conv_.epilogue.dtype)),
                         stride = conv_.grid.step.x * plan_.filters * size,
                         at = (pixel * plan_.filters + pair * block_columns) * size;
      for (std::int64_t i = 0; i < count; ++i) __builtin_prefetch(conv_.y + at + i * stride, 1);
    });
    kernel_.multiply({.rows = rows,
                      .row_stride = band_.row_stride(),
                      .offsets = offsets,
                      .steps = panels_.steps(),
                      .panels = conv_.packed + 2 * pair * panels_.panel_bytes(),
                      .row_tiles = used > 16 ? 2 : 1,
                      .panel_count = columns > panel_width ? 2 : 1,
                      .sums = sums});
    for_each_run(position, [&](std::int64_t row, std::int64_t count, std::int64_t pixel) {
      finish_block(conv_.isa, conv_.epilogue, sums + row * block_columns * 4,
                   {.result = conv_.y,
                    .offset = pixel * plan_.filters + pair * block_columns,
                    .row_stride = conv_.grid.step.x * plan_.filters,
                    .rows = count,
                    .first_column = pair * block_columns,
                    .columns = columns});
    });
  }

  // Calls f(row, count, output pixel) for the runs of output pixels among the positions of one block.
  template <class F>
  void for_each_run(std::int64_t first, const F& f) const {
    const std::int64_t length = band_.out_line();
    std::int64_t line = first / length, x = first % length;
    for (std::int64_t row = 0; row < block_rows; ++line, x = 0) {
      const std::int64_t image = line / band_.out_lines(), y = line % band_.out_lines();
      const std::int64_t count = std::min(plan_.out.x - x, block_rows - row);
      if (image >= plan_.images) return;
      if (y < plan_.out.y && count > 0) f(row, count, conv_.grid.pixel(plan_, image, y, x));
      row += length - x;
    }
  }

  std::int64_t used_rows(std::int64_t first) const {
    std::int64_t used = 0;
    for_each_run(first, [&](std::int64_t row, std::int64_t count, std::int64_t) { used = row + count; });
    return used;
  }

  const BlockConv& conv_;
  const Conv2dPlan& plan_;
  WindowBand band_;
  PackedPanels panels_;
  const BlockKernel& kernel_;
};

}  // namespace

std::int64_t block_conv_weight_bytes(const Conv2dPlan& plan, MatrixType type) {
  return block_conv_panels(plan, type).bytes();
}

void pack_block_conv_weight(const Conv2dPlan& plan, MatrixType type, std::byte* packed,
                            const std::byte* weight) {
  const WindowSegments segments = segments_of(plan);
  pack_panels(block_conv_panels(plan, type), packed,
              {.data = weight,
               .column_stride = segments.count * segments.elements * element_size(type),
               .segment_stride = segments.elements * element_size(type),
               .segment_elements = segments.elements});
}

void block_conv2d(const BlockConv& conv) {
  const bool is_identity = WindowBand(conv.plan, 1, 0).is_identity();
  if (!is_identity && uses_pair_conv(conv)) return pair_conv2d(conv);
  const Conv2dPlan plan = is_identity && conv.grid.is_dense() ? as_one_line(conv.plan) : conv.plan;
  BandProduct(conv, plan).run();
}

}  // namespace tandem::detail
