#include "tandem/ops/conv/band_product.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

// Bytes of a band: it stays in the L2 cache beside a pair of panels.
constexpr std::int64_t max_band_bytes = 1 << 18;
constexpr std::int64_t max_cached_weight_bytes = 1 << 20;

// Images whose windows are single pixels are one long line.
Conv2dPlan plan_of(const BlockConv& conv) {
  Conv2dPlan plan = conv.plan;
  if (conv.grid.is_dense() && WindowBand(conv.plan, 1, 0).is_identity()) {
    plan.in = plan.out = {1, plan.images * plan.in.y * plan.in.x};
    plan.images = 1;
  }
  return plan;
}

// Segments are copied with what follows them, up to a constant size; the next one overwrites it, and has
// weights of zero behind the last.
template <std::size_t size>
[[gnu::always_inline]] inline void gather_rows(std::byte* windows, std::int64_t window_bytes,
                                               const std::byte* rows, std::int64_t row_stride,
                                               std::span<const std::int64_t> segments,
                                               std::int64_t segment_bytes) {
  using Bytes = Vector<std::uint8_t, size>;
  for (std::int64_t row = 0; row < block_rows; ++row, rows += row_stride, windows += window_bytes) {
    std::byte* to = windows;
    for (const std::int64_t segment : segments) {
      *reinterpret_cast<Bytes*>(to) = *reinterpret_cast<const Bytes*>(rows + segment);
      to += segment_bytes;
    }
  }
}

// For the whole line of the cache, which a plain prefetch fetches as one that is only read.
[[gnu::always_inline]] inline void prefetch_to_write(const std::byte* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace

BandProduct::BandProduct(const BlockConv& conv)
    : conv_(conv),
      plan_(plan_of(conv)),
      band_(plan_, element_size(conv.epilogue.type), conv.padding_value),
      panels_(block_conv_panels(plan_, conv.epilogue.type)),
      joins_(joins_segments(plan_, conv.epilogue.type)),
      kernel_(block_kernel(conv.epilogue.type, conv.isa)),
      image_rows_(band_.positions() / conv.plan.images),
      blocks_(ceil_div(band_.positions(), block_rows)) {
  const std::int64_t pairs = ceil_div(panels_.panels(), 2), threads = thread_count();
  parts_ = choose_parts({.blocks = blocks_,
                         .pairs = pairs,
                         .threads = threads,
                         .product_cycles = 64 * panels_.steps(),
                         .block_bytes = block_bytes(),
                         .pair_bytes = 2 * panels_.panel_bytes(),
                         .result_bytes = block_columns * result_bytes()});
  part_pairs_ = pairs / parts_;
  plan_scratch(std::min(blocks_, ceil_div(units(), threads)));
}

// For ranges of units with at most so many blocks.
void BandProduct::plan_scratch(std::int64_t max_blocks) {
  std::int64_t gathered = 0;
  if (band_.is_identity()) {
    offsets_ = step_offsets(band_, plan_, panels_, 0);
    band_bytes_ = image_bytes() - in_place_blocks() * block_bytes() + block_bytes() + step_bytes;
  } else {
    const std::int64_t line_bytes = band_.planes() * band_.line_bytes(), positions = band_.out_line();
    lines_ = std::clamp(max_band_bytes / line_bytes - band_.plane_lines(0),
                        ceil_div(block_rows, positions) + 1, max_blocks * block_rows / positions + 2);
    lines_of_plane_ = band_.plane_lines(lines_);
    // What a block reads behind its last window, at most, follows.
    band_bytes_ =
        round_up(lines_of_plane_ * line_bytes + block_bytes() + band_.line_bytes() + step_bytes, step_bytes);
    if (joins_) {
      for (std::int64_t segment = 0; segment < segments_of(plan_).count; ++segment)
        segments_.push_back(band_.segment_offset(segment, lines_of_plane_));
      for (std::int64_t step = 0; step < panels_.steps(); ++step) offsets_.push_back(step * step_bytes);
      gathered = block_rows * window_bytes() + step_bytes;  // what is copied behind the last one
    } else {
      offsets_ = step_offsets(band_, plan_, panels_, lines_of_plane_);
    }
  }
  const std::int64_t bytes = band_bytes_ + gathered;
  scratch_bytes_ = round_up(bytes, bytes > 1 << 16 ? 1 << 19 : 1 << 16);
}

void BandProduct::run(IndexRange units, std::byte* scratch) const {
  const BlockKernelScope tiles(kernel_);
  for_each_part(units, blocks_, part_pairs_, [&](const ConvPart& part) {
    band_.is_identity() ? multiply_pixels(part, scratch) : multiply_bands(part, scratch);
  });
}

IndexRange BandProduct::images_of(IndexRange rows) const {
  return {rows.begin / image_rows_, std::min(ceil_div(rows.end, image_rows_), conv_.plan.images)};
}

std::int64_t BandProduct::blocks_of_image(std::int64_t image, IndexRange blocks) const {
  const std::int64_t first = image * image_rows_ / block_rows,
                     end = ceil_div((image + 1) * image_rows_, block_rows);
  return std::max<std::int64_t>(std::min(end, blocks.end) - std::max(first, blocks.begin), 0);
}

IndexRange BandProduct::images_read(IndexRange units) const {
  IndexRange images{conv_.plan.images, 0};
  for_each_part(units, blocks_, part_pairs_, [&](const ConvPart& part) {
    IndexRange rows{part.first_block * block_rows, part.last_block * block_rows};
    // What is copied, or read beside weights of zero, behind the last window.
    if (band_.is_identity())
      rows.end += ceil_div(step_bytes, band_.row_stride());
    else
      rows.end = (ceil_div(rows.end, band_.out_line()) + band_.plane_lines(0)) * band_.out_line();
    const IndexRange read = images_of(rows);
    images = {std::min(images.begin, read.begin), std::max(images.end, read.end)};
  });
  return images;
}

// Windows of one pixel are read in place, but for the last blocks, which would read behind the images.
std::int64_t BandProduct::in_place_blocks() const {
  return std::max<std::int64_t>((image_bytes() - step_bytes) / block_bytes(), 0);
}

void BandProduct::multiply_pixels(const ConvPart& part, std::byte* scratch) const {
  const std::int64_t in_place = in_place_blocks(),
                     chunk = std::max<std::int64_t>(max_band_bytes / block_bytes(), 1);
  for (std::int64_t first = part.first_block; first < std::min(part.last_block, in_place); first += chunk)
    multiply_blocks(part, {.blocks = {first, std::min({part.last_block, in_place, first + chunk})},
                           .rows = conv_.x + first * block_bytes()});
  const std::int64_t rest = std::max(part.first_block, in_place);
  if (rest >= part.last_block) return;
  const std::int64_t bytes = (part.last_block - rest) * block_bytes() + step_bytes,
                     copied = std::min(image_bytes() - rest * block_bytes(), bytes);
  std::memcpy(scratch, conv_.x + rest * block_bytes(), static_cast<std::size_t>(copied));
  std::memset(scratch + copied, 0, static_cast<std::size_t>(bytes - copied));
  multiply_blocks(part, {.blocks = {rest, part.last_block}, .rows = scratch});
}

void BandProduct::multiply_bands(const ConvPart& part, std::byte* scratch) const {
  const std::int64_t positions = band_.out_line(), chunk = (lines_ - 1) * positions / block_rows;
  std::byte* const windows = joins_ ? scratch + band_bytes_ : nullptr;
  if (joins_) std::memset(windows, 0, static_cast<std::size_t>(block_rows * window_bytes()));
  for (std::int64_t first = part.first_block; first < part.last_block; first += chunk) {
    const std::int64_t last = std::min(part.last_block, first + chunk),
                       first_line = first * block_rows / positions,
                       lines = ceil_div(last * block_rows, positions) - first_line;
    band_.copy(scratch, conv_.x, first_line, lines_of_plane_, band_.plane_lines(lines));
    const std::int64_t skipped = first * block_rows - first_line * positions;
    multiply_blocks(
        part, {.blocks = {first, last}, .rows = scratch + skipped * band_.row_stride(), .windows = windows});
  }
}

void BandProduct::gather(std::byte* windows, const std::byte* rows) const {
  const std::span<const std::int64_t> segments = segments_;
  const std::int64_t stride = band_.row_stride(), to_stride = window_bytes(),
                     bytes = segments_of(plan_).elements * element_size(panels_.type);
  with_simd([&]<std::size_t>() __attribute__((always_inline)) {
    if (bytes > step_bytes / 2)
      gather_rows<step_bytes>(windows, to_stride, rows, stride, segments, bytes);
    else
      gather_rows<step_bytes / 2>(windows, to_stride, rows, stride, segments, bytes);
  });
}

void BandProduct::find_runs(Runs& runs, std::int64_t block) const {
  const std::int64_t length = band_.out_line(), first = block * block_rows;
  std::int64_t line = first / length, x = first % length;
  std::int64_t image = line / band_.out_lines(), y = line % band_.out_lines();
  runs.block = block;
  runs.count = 0;
  for (std::int64_t row = 0; row < block_rows && image < plan_.images; x = 0) {
    const std::int64_t count = std::min(plan_.out.x - x, block_rows - row);
    if (y < plan_.out.y && count > 0)
      runs.runs[static_cast<std::size_t>(runs.count++)] = {
          row, count, conv_.grid.pixel(plan_, image, y, x) * plan_.filters};
    row += length - x;
    if (++y == band_.out_lines()) ++image, y = 0;
  }
}

void BandProduct::multiply_blocks(const ConvPart& part, const Chunk& chunk) const {
  const bool weight_stays =
      (part.last_pair - part.first_pair) * 2 * panels_.panel_bytes() <= max_cached_weight_bytes;
  const std::int64_t pair_bytes = block_columns * result_bytes();
  Runs runs;
  for_each_product(part, chunk.blocks, weight_stays, [&](std::int64_t block, std::int64_t pair) {
    const std::byte* const rows = chunk.rows + (block - chunk.blocks.begin) * block_bytes();
    if (runs.block != block) {
      find_runs(runs, block);
      if (chunk.windows && runs.count > 0) gather(chunk.windows, rows);
    }
    if (runs.count == 0) return;
    // Where two pairs write halves of the same lines of the cache, the first one fetches them.
    if (pair == part.first_pair || pair * pair_bytes % 64 == 0) prefetch_results(runs, pair);
    if (chunk.windows)
      multiply_block(pair, runs, chunk.windows, window_bytes());
    else
      multiply_block(pair, runs, rows, band_.row_stride());
  });
}

// The results' lines arrive in the cache while the sums are computed.
void BandProduct::prefetch_results(const Runs& runs, std::int64_t pair) const {
  const std::int64_t size = result_bytes(), stride = conv_.grid.step.x * plan_.filters * size;
  for (const BlockRun& run : runs.used()) {
    const std::byte* const to = conv_.y + (run.offset + pair * block_columns) * size;
    for (std::int64_t i = 0; i < run.count; ++i) prefetch_to_write(to + i * stride);
  }
}

void BandProduct::multiply_block(std::int64_t pair, const Runs& runs, const std::byte* rows,
                                 std::int64_t row_stride) const {
  alignas(64) std::byte sums[block_rows * block_columns * 4];
  const std::int64_t columns = std::min(block_columns, plan_.filters - pair * block_columns);
  kernel_.multiply({.rows = rows,
                    .row_stride = row_stride,
                    .offsets = offsets_.data(),
                    .steps = panels_.steps(),
                    .panels = conv_.packed + 2 * pair * panels_.panel_bytes(),
                    .row_tiles = runs.used_rows() > 16 ? 2 : 1,
                    .panel_count = columns > panel_width ? 2 : 1,
                    .sums = sums});
  finish_block(conv_.isa, conv_.epilogue, sums,
               {.result = conv_.y,
                .row_stride = conv_.grid.step.x * plan_.filters,
                .runs = runs.used(),
                .first_column = pair * block_columns,
                .columns = columns});
}

}  // namespace tandem::detail
