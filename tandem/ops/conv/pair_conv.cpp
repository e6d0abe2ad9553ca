#include "tandem/ops/conv/pair_conv.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/index_range.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/conv_parts.h"
#include "tandem/ops/conv/window_band.h"
#include "tandem/ops/pair_product.h"

namespace tandem::detail {
namespace {

// Bytes of a band, before it is in pairs: with these it stays in the L2 cache beside a pair of panels.
constexpr std::int64_t band_bytes = 3 << 15;
constexpr std::int64_t max_cached_weight_bytes = 3 << 18;
constexpr std::int64_t block_pixels = 2 * block_pairs;
constexpr std::int64_t group_bytes = 8;  // of one row of a pair

class PairConvolution {
 public:
  // `by_images`: the images, of an even number, are the first and second rows of pairs in turn.
  PairConvolution(const BlockConv& conv, bool by_images)
      : conv_(conv),
        plan_(conv.plan),
        by_images_(by_images),
        band_(plan_, element_size(conv.epilogue.type), conv.padding_value,
              {.line_multiple = group_bytes, .image_step = by_images ? 2 : 1}),
        panels_(block_conv_panels(plan_, conv.epilogue.type)),
        kernel_(pair_kernel(conv.epilogue.type, conv.isa)),
        line_pairs_(by_images ? plan_.out.x : ceil_div(plan_.out.x, 2)) {
    if (by_images) plan_.images /= 2;
  }

  void run() const {
    const std::int64_t blocks = ceil_div(pair_count(), block_pairs), pairs = ceil_div(panels_.panels(), 2);
    const std::int64_t parts = choose_parts({.blocks = blocks,
                                             .pairs = pairs,
                                             .threads = thread_count(),
                                             .product_cycles = 500 * panels_.steps(),
                                             .block_bytes = 2 * block_pixels * band_.row_stride(),
                                             .pair_bytes = 2 * panels_.panel_bytes()}),
                       part_pairs = pairs / parts;
    parallel_for(blocks * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for_each_part({begin, end}, blocks, part_pairs, [&](const ConvPart& part) { multiply(part); });
    });
  }

 private:
  // Pairs of output pixels, counted through all lines of all images, or all pairs of images.
  std::int64_t pair_count() const { return plan_.images * plan_.out.y * line_pairs_; }
  // The line of a band in which the windows of a pair begin.
  std::int64_t band_line(std::int64_t pair) const {
    const std::int64_t line = pair / line_pairs_;
    return line / plan_.out.y * band_.out_lines() + line % plan_.out.y;
  }
  // Lines of a band for the blocks.
  std::int64_t lines_of(IndexRange blocks) const {
    const std::int64_t last = std::min(blocks.end * block_pairs, pair_count()) - 1;
    return band_line(last) - band_line(blocks.begin * block_pairs) + 1;
  }

  // As many blocks as one band has room for, at least one.
  IndexRange next_blocks(std::int64_t first, std::int64_t end) const {
    const std::int64_t max_lines = band_bytes / (band_.planes() * band_.line_bytes()) - band_.plane_lines(0);
    IndexRange blocks{first, first + 1};
    while (blocks.end < end && lines_of({first, blocks.end + 1}) <= max_lines) ++blocks.end;
    return blocks;
  }

  void multiply(const ConvPart& part) const {
    std::int64_t max_lines = 0;
    for (IndexRange blocks{part.first_block, part.first_block}; blocks.end < part.last_block;) {
      blocks = next_blocks(blocks.end, part.last_block);
      max_lines = std::max(max_lines, lines_of(blocks));
    }
    const std::int64_t lines_of_plane = band_.plane_lines(max_lines),
                       bytes = lines_of_plane * band_.planes() * band_.line_bytes();
    // What windows may read behind the last line, with weights of zero.
    const std::int64_t slack = round_up(2 * band_.row_stride() + band_.line_bytes() + 2 * step_bytes, 16),
                       band = bytes + slack,
                       paired = (by_images_ ? band : band - band_.row_stride()) / 16 * 16;
    const Buffer memory = make_scratch<std::byte>((by_images_ ? 2 : 1) * band + 2 * paired);
    std::byte* const lines = memory.data();
    std::byte* const second = lines + band;  // images, or the pairs
    std::byte* const pairs = by_images_ ? second + band : second;
    std::memset(lines + bytes, 0, static_cast<std::size_t>(slack));
    if (by_images_) std::memset(second + bytes, 0, static_cast<std::size_t>(slack));
    const RecycledVector<std::int64_t> offsets = step_offsets(band_, plan_, panels_, lines_of_plane);
    RecycledVector<std::int64_t> rows;
    for (IndexRange blocks{part.first_block, part.first_block}; blocks.end < part.last_block;) {
      blocks = next_blocks(blocks.end, part.last_block);
      const std::int64_t first_line = band_line(blocks.begin * block_pairs);
      band_.copy(lines, conv_.x, first_line, lines_of_plane, lines_of_plane);
      if (by_images_) band_.copy(second, conv_.x + image_bytes(), first_line, lines_of_plane, lines_of_plane);
      make_pairs(pairs, lines, paired, by_images_ ? band : band_.row_stride());
      find_rows(rows, blocks);
      multiply_blocks(part,
                      {.blocks = blocks, .memory = pairs, .rows = rows.data(), .offsets = offsets.data()});
    }
  }

  // Where the pairs of the blocks begin. Behind the last one, its own place is repeated.
  void find_rows(RecycledVector<std::int64_t>& rows, IndexRange blocks) const {
    const std::int64_t first_line = band_line(blocks.begin * block_pairs);
    rows.resize(static_cast<std::size_t>(blocks.count() * block_pairs));
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
      const std::int64_t pair = std::min(blocks.begin * block_pairs + i, pair_count() - 1);
      const std::int64_t position =
          (band_line(pair) - first_line) * band_.out_line() + pair % line_pairs_ * (by_images_ ? 1 : 2);
      rows[static_cast<std::size_t>(i)] = 2 * position * band_.row_stride();
    }
  }

  struct Chunk {
    IndexRange blocks;
    const std::byte* memory;
    const std::int64_t* rows;
    const std::int64_t* offsets;
  };

  void multiply_blocks(const ConvPart& part, const Chunk& chunk) const {
    const bool weight_stays =
        (part.last_pair - part.first_pair) * 2 * panels_.panel_bytes() <= max_cached_weight_bytes;
    for_each_product(part, chunk.blocks, weight_stays,
                     [&](std::int64_t block, std::int64_t pair) { multiply_block(chunk, block, pair); });
  }

  void multiply_block(const Chunk& chunk, std::int64_t block, std::int64_t panel_pair) const {
    alignas(64) std::byte sums[block_pixels * block_columns * 4];
    const std::int64_t columns = std::min(block_columns, plan_.filters - panel_pair * block_columns),
                       used = std::min(block_pairs, pair_count() - block * block_pairs);
    kernel_({.rows = chunk.memory,
             .pairs = chunk.rows + (block - chunk.blocks.begin) * block_pairs,
             .offsets = chunk.offsets,
             .steps = panels_.steps(),
             .panels = conv_.packed + 2 * panel_pair * panels_.panel_bytes(),
             .used_tiles = static_cast<int>(ceil_div(used, tile_pairs)),
             .panel_count = columns > panel_width ? 2 : 1,
             .splits_pairs = by_images_,
             .sums = sums});
    for_each_run({block * block_pairs, block * block_pairs + used},
                 [&](std::int64_t row, std::int64_t count, std::int64_t pixel) {
                   const BlockRun run{row, count, pixel * plan_.filters};
                   finish_block(conv_.isa, conv_.epilogue, sums,
                                {.result = conv_.y,
                                 .row_stride = conv_.grid.step.x * plan_.filters,
                                 .runs = {&run, 1},
                                 .first_column = panel_pair * block_columns,
                                 .columns = columns});
                 });
  }

  // Calls f(row, count, output pixel) for the runs of output pixels in one line, or, where lines follow one
  // another without gaps, in all of them.
  template <class F>
  void for_each_run(IndexRange pairs, const F& f) const {
    if (by_images_) return for_each_image_run(pairs, f);
    const bool has_gaps = !conv_.grid.is_dense() || plan_.out.x % 2 != 0;
    for (std::int64_t pair = pairs.begin; pair < pairs.end;) {
      const std::int64_t line = pair / line_pairs_, first = pair % line_pairs_ * 2;
      const std::int64_t count =
          has_gaps ? std::min(line_pairs_ - first / 2, pairs.end - pair) : pairs.end - pair;
      const std::int64_t pixels = has_gaps ? std::min(2 * count, plan_.out.x - first) : 2 * count;
      f(2 * (pair - pairs.begin), pixels,
        conv_.grid.pixel(conv_.plan, line / plan_.out.y, line % plan_.out.y, first));
      pair += count;
    }
  }
  template <class F>
  void for_each_image_run(IndexRange pairs, const F& f) const {
    const std::int64_t run = conv_.grid.is_dense() ? plan_.out.y * plan_.out.x : plan_.out.x;
    for (std::int64_t pair = pairs.begin; pair < pairs.end;) {
      const std::int64_t line = pair / plan_.out.x, image = line / plan_.out.y * 2;
      const std::int64_t count = std::min(run - pair % run, pairs.end - pair);
      for (std::int64_t i = 0; i < 2; ++i)
        f(i * block_pairs + pair - pairs.begin, count,
          conv_.grid.pixel(conv_.plan, image + i, line % plan_.out.y, pair % plan_.out.x));
      pair += count;
    }
  }

  std::int64_t image_bytes() const {
    return plan_.in.y * plan_.in.x * plan_.channels * element_size(conv_.epilogue.type);
  }

  const BlockConv& conv_;
  Conv2dPlan plan_;  // of pairs of images
  bool by_images_;
  WindowBand band_;
  PackedPanels panels_;
  PairKernel kernel_;
  std::int64_t line_pairs_;
};

std::int64_t pixel_bytes(const BlockConv& conv) {
  return conv.plan.channels * element_size(conv.epilogue.type);
}

// Short lines of odd length would waste a row of their last pair.
bool pairs_images(const BlockConv& conv) {
  constexpr std::int64_t max_wasteful_line = 32;
  return conv.plan.images > 1 && conv.plan.out.x % 2 != 0 && conv.plan.out.x < max_wasteful_line &&
         conv.plan.window.stride.x * pixel_bytes(conv) % group_bytes == 0;
}

// The images from `first` on.
BlockConv images_from(BlockConv conv, std::int64_t first) {
  const Conv2dPlan& plan = conv.plan;
  const YX out = conv.grid.is_dense() ? plan.out : conv.grid.size;
  const std::int64_t result_bytes =
      first * out.y * out.x * plan.filters * static_cast<std::int64_t>(size_of(conv.epilogue.dtype));
  conv.x += first * plan.in.y * plan.in.x * pixel_bytes(conv);
  conv.y += result_bytes;
  if (conv.epilogue.residual) conv.epilogue.residual += result_bytes;
  conv.plan.images -= first;
  return conv;
}

}  // namespace

bool uses_pair_conv(const BlockConv& conv) {
  const std::int64_t dilation = conv.plan.window.dilation.x;
  return pair_kernel(conv.epilogue.type, conv.isa) != nullptr &&
         2 * conv.plan.window.stride.x * pixel_bytes(conv) % group_bytes == 0 &&
         (dilation == 1 || dilation * pixel_bytes(conv) % group_bytes == 0);
}

void pair_conv2d(const BlockConv& conv) {
  if (!pairs_images(conv)) return PairConvolution(conv, false).run();
  const std::int64_t paired = conv.plan.images / 2 * 2;
  BlockConv even = conv;
  even.plan.images = paired;
  PairConvolution(even, true).run();
  if (paired < conv.plan.images) {
    const BlockConv last = images_from(conv, paired);
    PairConvolution(last, false).run();
  }
}

}  // namespace tandem::detail
