#include "tandem/ops/conv/block_conv.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tandem/core/index_range.h"
#include "tandem/core/parallel_shares.h"
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
        joins_(joins_segments(plan_, conv.epilogue.type)),
        kernel_(block_kernel(conv.epilogue.type, conv.isa)) {}

  void run() const {
    const std::int64_t blocks = ceil_div(band_.positions(), block_rows),
                       pairs = ceil_div(panels_.panels(), 2), threads = thread_count();
    const std::int64_t parts = choose_parts({.blocks = blocks,
                                             .pairs = pairs,
                                             .threads = threads,
                                             .product_cycles = 64 * panels_.steps(),
                                             .block_bytes = block_rows * band_.row_stride(),
                                             .pair_bytes = 2 * panels_.panel_bytes()}),
                       part_pairs = pairs / parts;
    const Workspace space = make_workspace(std::min(blocks, ceil_div(blocks * parts, threads)), threads);
    parallel_shares(blocks * parts, [&](IndexRange units, std::int64_t thread) {
      const BlockKernelScope tiles(kernel_);
      for_each_part(units, blocks, part_pairs, [&](const ConvPart& part) {
        band_.is_identity() ? multiply_pixels(part, space, thread) : multiply_bands(part, space, thread);
      });
    });
  }

 private:
  // What all threads share, and memory for each: the same for most layers, so that it stays in the caches of
  // its thread.
  struct Workspace {
    std::int64_t lines = 0, lines_of_plane = 0;  // of a band: of positions, and of a plane
    std::int64_t band_bytes = 0;                 // with what is read behind it
    std::int64_t thread_bytes = 0;
    RecycledVector<std::int64_t> offsets;   // of steps
    RecycledVector<std::int64_t> segments;  // offsets of those that are joined
    Buffer memory;

    std::byte* band(std::int64_t thread) const { return memory.data() + thread * thread_bytes; }
    std::byte* windows(std::int64_t thread) const { return band(thread) + band_bytes; }
  };

  // For parts of at most `blocks` blocks.
  Workspace make_workspace(std::int64_t blocks, std::int64_t threads) const {
    Workspace space;
    std::int64_t gathered = 0;
    if (band_.is_identity()) {
      space.offsets = step_offsets(band_, plan_, panels_, 0);
      space.band_bytes = image_bytes() - in_place_blocks() * block_bytes() + block_bytes() + step_bytes;
    } else {
      const std::int64_t line_bytes = band_.planes() * band_.line_bytes(), positions = band_.out_line();
      space.lines = std::clamp(band_bytes / line_bytes - band_.plane_lines(0),
                               ceil_div(block_rows, positions) + 1, blocks * block_rows / positions + 2);
      space.lines_of_plane = band_.plane_lines(space.lines);
      // What a block reads behind its last window, at most, follows.
      space.band_bytes = round_up(
          space.lines_of_plane * line_bytes + block_bytes() + band_.line_bytes() + step_bytes, step_bytes);
      if (joins_) {
        for (std::int64_t segment = 0; segment < segments_of(plan_).count; ++segment)
          space.segments.push_back(band_.segment_offset(segment, space.lines_of_plane));
        for (std::int64_t step = 0; step < panels_.steps(); ++step)
          space.offsets.push_back(step * step_bytes);
        gathered = block_rows * window_bytes();
      } else {
        space.offsets = step_offsets(band_, plan_, panels_, space.lines_of_plane);
      }
    }
    const std::int64_t bytes = space.band_bytes + gathered;
    space.thread_bytes = round_up(bytes, bytes > 1 << 16 ? 1 << 19 : 1 << 16);
    space.memory = make_scratch<std::byte>(threads * space.thread_bytes);
    return space;
  }

  // Windows of one pixel are read in place, but for the last blocks, which would read behind the images.
  std::int64_t in_place_blocks() const {
    return std::max<std::int64_t>((image_bytes() - step_bytes) / block_bytes(), 0);
  }

  void multiply_pixels(const ConvPart& part, const Workspace& space, std::int64_t thread) const {
    const std::int64_t in_place = in_place_blocks(),
                       chunk = std::max<std::int64_t>(band_bytes / block_bytes(), 1);
    for (std::int64_t first = part.first_block; first < std::min(part.last_block, in_place); first += chunk)
      multiply_blocks(part, {.blocks = {first, std::min({part.last_block, in_place, first + chunk})},
                             .rows = conv_.x + first * block_bytes(),
                             .offsets = space.offsets.data()});
    const std::int64_t rest = std::max(part.first_block, in_place);
    if (rest >= part.last_block) return;
    const std::int64_t bytes = (part.last_block - rest) * block_bytes() + step_bytes,
                       copied = std::min(image_bytes() - rest * block_bytes(), bytes);
    std::byte* const memory = space.band(thread);
    std::memcpy(memory, conv_.x + rest * block_bytes(), static_cast<std::size_t>(copied));
    std::memset(memory + copied, 0, static_cast<std::size_t>(bytes - copied));
    multiply_blocks(part,
                    {.blocks = {rest, part.last_block}, .rows = memory, .offsets = space.offsets.data()});
  }

  void multiply_bands(const ConvPart& part, const Workspace& space, std::int64_t thread) const {
    const std::int64_t positions = band_.out_line(), chunk = (space.lines - 1) * positions / block_rows;
    std::byte* const memory = space.band(thread);
    if (joins_) std::memset(space.windows(thread), 0, static_cast<std::size_t>(block_rows * window_bytes()));
    for (std::int64_t first = part.first_block; first < part.last_block; first += chunk) {
      const std::int64_t last = std::min(part.last_block, first + chunk),
                         first_line = first * block_rows / positions,
                         lines = ceil_div(last * block_rows, positions) - first_line;
      band_.copy(memory, conv_.x, first_line, space.lines_of_plane, band_.plane_lines(lines));
      const std::int64_t skipped = first * block_rows - first_line * positions;
      multiply_blocks(part, {.blocks = {first, last},
                             .rows = memory + skipped * band_.row_stride(),
                             .offsets = space.offsets.data(),
                             .windows = joins_ ? space.windows(thread) : nullptr,
                             .segments = space.segments.data()});
    }
  }

  std::int64_t block_bytes() const { return block_rows * band_.row_stride(); }
  std::int64_t window_bytes() const { return panels_.steps() * step_bytes; }

  // Segments are copied in two halves of constant size, which overlap.
  void gather(std::byte* windows, const std::byte* rows, const std::int64_t* segments) const {
    constexpr std::int64_t half = step_bytes / 2;
    const WindowSegments all = segments_of(plan_);
    const std::int64_t bytes = all.elements * element_size(panels_.type), rest = bytes - half;
    for (std::int64_t row = 0; row < block_rows; ++row, rows += band_.row_stride()) {
      std::byte* to = windows + row * window_bytes();
      for (std::int64_t segment = 0; segment < all.count; ++segment, to += bytes) {
        const std::byte* const from = rows + segments[segment];
        std::memcpy(to, from, half);
        std::memcpy(to + rest, from + rest, half);
      }
    }
  }

  std::int64_t image_bytes() const {
    return plan_.images * plan_.in.y * plan_.in.x * plan_.channels * element_size(panels_.type);
  }

  // Blocks whose windows begin at `rows`.
  struct Chunk {
    IndexRange blocks;
    const std::byte* rows;
    const std::int64_t* offsets;   // of steps
    std::byte* windows = nullptr;  // room for those of a block, where segments are joined
    const std::int64_t* segments = nullptr;
  };

  // Rows of a block whose output pixels follow one another.
  struct Run {
    std::int64_t row, count, pixel;
  };
  // The rows of a block that are output pixels.
  struct Runs {
    std::int64_t block = -1;
    std::int64_t count = 0;
    std::array<Run, block_rows> runs;

    const Run* begin() const { return runs.data(); }
    const Run* end() const { return runs.data() + count; }
    std::int64_t used_rows() const { return count == 0 ? 0 : end()[-1].row + end()[-1].count; }
  };

  void find_runs(Runs& runs, std::int64_t block) const {
    const std::int64_t length = band_.out_line(), first = block * block_rows;
    std::int64_t line = first / length, x = first % length;
    std::int64_t image = line / band_.out_lines(), y = line % band_.out_lines();
    runs.block = block;
    runs.count = 0;
    for (std::int64_t row = 0; row < block_rows && image < plan_.images; x = 0) {
      const std::int64_t count = std::min(plan_.out.x - x, block_rows - row);
      if (y < plan_.out.y && count > 0)
        runs.runs[static_cast<std::size_t>(runs.count++)] = {row, count,
                                                             conv_.grid.pixel(plan_, image, y, x)};
      row += length - x;
      if (++y == band_.out_lines()) ++image, y = 0;
    }
  }

  void multiply_blocks(const ConvPart& part, const Chunk& chunk) const {
    const bool weight_stays =
        (part.last_pair - part.first_pair) * 2 * panels_.panel_bytes() <= max_cached_weight_bytes;
    Runs runs;
    for_each_product(part, chunk.blocks, weight_stays, [&](std::int64_t block, std::int64_t pair) {
      const std::byte* const rows = chunk.rows + (block - chunk.blocks.begin) * block_bytes();
      if (runs.block != block) {
        find_runs(runs, block);
        if (chunk.windows) gather(chunk.windows, rows, chunk.segments);
      }
      if (runs.count == 0) return;
      multiply_block(pair, runs,
                     {.rows = chunk.windows ? chunk.windows : rows,
                      .row_stride = chunk.windows ? window_bytes() : band_.row_stride(),
                      .offsets = chunk.offsets});
    });
  }

  // `product` has the rows of the block.
  void multiply_block(std::int64_t pair, const Runs& runs, BlockProduct product) const {
    alignas(64) std::byte sums[block_rows * block_columns * 4];
    const std::int64_t columns = std::min(block_columns, plan_.filters - pair * block_columns),
                       size = static_cast<std::int64_t>(size_of(conv_.epilogue.dtype)),
                       stride = conv_.grid.step.x * plan_.filters;
    // The results' lines arrive in the cache while the sums are computed.
    for (const Run& run : runs) {
      const std::byte* const to = conv_.y + (run.pixel * plan_.filters + pair * block_columns) * size;
      for (std::int64_t i = 0; i < run.count; ++i) __builtin_prefetch(to + i * stride * size, 1);
    }
    product.steps = panels_.steps();
    product.panels = conv_.packed + 2 * pair * panels_.panel_bytes();
    product.row_tiles = runs.used_rows() > 16 ? 2 : 1;
    product.panel_count = columns > panel_width ? 2 : 1;
    product.sums = sums;
    kernel_.multiply(product);
    for (const Run& run : runs)
      finish_block(conv_.isa, conv_.epilogue, sums + run.row * block_columns * 4,
                   {.result = conv_.y,
                    .offset = run.pixel * plan_.filters + pair * block_columns,
                    .row_stride = stride,
                    .rows = run.count,
                    .first_column = pair * block_columns,
                    .columns = columns});
  }

  const BlockConv& conv_;
  const Conv2dPlan& plan_;
  WindowBand band_;
  PackedPanels panels_;
  bool joins_;
  const BlockKernel& kernel_;
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
  const bool is_identity = WindowBand(conv.plan, 1, 0).is_identity();
  if (!is_identity && uses_pair_conv(conv)) return pair_conv2d(conv);
  const Conv2dPlan plan = is_identity && conv.grid.is_dense() ? as_one_line(conv.plan) : conv.plan;
  BandProduct(conv, plan).run();
}

}  // namespace tandem::detail
