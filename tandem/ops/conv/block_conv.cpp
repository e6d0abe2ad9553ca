#include "tandem/ops/conv/block_conv.h"

#include <algorithm>

#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/window_rows.h"
#include "tandem/ops/conv/work_split.h"

namespace tandem::detail {
namespace {

PackedPanels panels_of_group(const Conv2dPlan& plan, MatrixType type) {
  return {.type = type,
          .columns = plan.filters / plan.groups,
          .inner = plan.kernel.y * plan.kernel.x * (plan.channels / plan.groups)};
}

// Windows of one pixel of whole steps: rows of the product are the pixels themselves.
bool are_rows_in_place(const Conv2dPlan& plan, MatrixType type) {
  return plan.kernel == YX{1, 1} && plan.window.stride == YX{1, 1} && plan.window.padding == YX{0, 0} &&
         plan.groups == 1 && plan.channels % step_elements(type) == 0;
}

// Bytes of the rows that are gathered at a time: they stay in the L2 cache beside a pair of panels.
constexpr std::int64_t gathered_bytes = 1 << 19;

struct Part {
  std::int64_t first_row, last_row;
  std::int64_t first_pair, last_pair;  // pairs of panels
};

class GroupProduct {
 public:
  GroupProduct(const BlockConv& conv, std::int64_t group)
      : conv_(conv),
        panels_(panels_of_group(conv.plan, conv.epilogue.type)),
        kernel_(block_kernel(conv.epilogue.type, conv.isa)),
        group_(group),
        in_place_(are_rows_in_place(conv.plan, conv.epilogue.type)) {
    for (std::int64_t s = 0; s < panels_.steps(); ++s) offsets_.push_back(s * step_bytes);
  }

  void run() const {
    const std::int64_t rows = conv_.plan.images * conv_.plan.out.y * conv_.plan.out.x,
                       blocks = ceil_div(rows, block_rows), pairs = ceil_div(panels_.panels(), 2);
    const std::int64_t parts = panel_parts(blocks, pairs, thread_count()), part_pairs = pairs / parts;
    parallel_for(blocks * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      const BlockKernelScope tiles(kernel_);
      while (begin < end) {
        const std::int64_t part = begin / blocks, first = begin % blocks;
        const std::int64_t last = std::min(blocks, first + end - begin);
        multiply({.first_row = first * block_rows,
                  .last_row = std::min(rows, last * block_rows),
                  .first_pair = part * part_pairs,
                  .last_pair = (part + 1) * part_pairs});
        begin += last - first;
      }
    });
  }

 private:
  void multiply(const Part& part) const {
    const std::int64_t row_bytes = panels_.steps() * step_bytes;
    const std::int64_t chunk =
        std::min(round_up(part.last_row - part.first_row, block_rows),
                 std::max(gathered_bytes / row_bytes / block_rows, std::int64_t{1}) * block_rows);
    const Buffer gathered = make_scratch<std::byte>(chunk * row_bytes);
    const WindowRows windows{.plan = conv_.plan,
                             .x = conv_.x,
                             .element_bytes = element_size(panels_.type),
                             .first_channel = group_ * (conv_.plan.channels / conv_.plan.groups),
                             .row_bytes = row_bytes,
                             .padding_value = conv_.padding_value};
    for (std::int64_t first = part.first_row; first < part.last_row; first += chunk) {
      const std::int64_t count = std::min(chunk, part.last_row - first);
      // Blocks read all their 32 rows, so that the last ones are always gathered.
      const bool in_place = in_place_ && count % block_rows == 0;
      if (!in_place) {
        with_simd([&]<std::size_t>()
                      __attribute__((always_inline)) { windows.gather(gathered.data(), first, count); });
        const std::int64_t missing = round_up(count, block_rows) - count;
        std::memset(gathered.data() + count * row_bytes, 0, static_cast<std::size_t>(missing * row_bytes));
      }
      multiply_rows(part, in_place ? conv_.x + first * row_bytes : gathered.data(), first, count);
    }
  }

  void multiply_rows(const Part& part, const std::byte* rows, std::int64_t first, std::int64_t count) const {
    alignas(64) std::byte sums[block_rows * block_columns * 4];
    const std::int64_t row_bytes = panels_.steps() * step_bytes, filters = conv_.plan.filters;
    for (std::int64_t pair = part.first_pair; pair < part.last_pair; ++pair) {
      const std::int64_t column = pair * block_columns, group_column = group_ * panels_.columns + column;
      const std::int64_t columns = std::min(block_columns, panels_.columns - column);
      for (std::int64_t row = 0; row < count; row += block_rows) {
        const std::int64_t block = std::min(block_rows, count - row);
        kernel_.multiply(
            {.rows = rows + row * row_bytes,
             .row_stride = row_bytes,
             .offsets = offsets_.data(),
             .steps = panels_.steps(),
             .panels = conv_.packed + group_ * panels_.bytes() + 2 * pair * panels_.panel_bytes(),
             .row_tiles = block > 16 ? 2 : 1,
             .panel_count = columns > panel_width ? 2 : 1,
             .sums = sums});
        finish_block(conv_.isa, conv_.epilogue, sums,
                     {.result = conv_.y,
                      .offset = (first + row) * filters + group_column,
                      .row_stride = filters,
                      .rows = block,
                      .first_column = group_column,
                      .columns = columns});
      }
    }
  }

  const BlockConv& conv_;
  PackedPanels panels_;
  const BlockKernel& kernel_;
  std::int64_t group_;
  bool in_place_;
  RecycledVector<std::int64_t> offsets_;
};

}  // namespace

std::int64_t block_conv_weight_bytes(const Conv2dPlan& plan, MatrixType type) {
  return plan.groups * panels_of_group(plan, type).bytes();
}

void pack_block_conv_weight(const Conv2dPlan& plan, MatrixType type, std::byte* packed,
                            const std::byte* weight) {
  const PackedPanels layout = panels_of_group(plan, type);
  const std::int64_t filter_bytes = layout.inner * element_size(type);
  for (std::int64_t group = 0; group < plan.groups; ++group)
    pack_panels(layout, packed + group * layout.bytes(), weight + group * layout.columns * filter_bytes,
                filter_bytes, element_size(type));
}

void block_conv2d(const BlockConv& conv) {
  for (std::int64_t group = 0; group < conv.plan.groups; ++group) GroupProduct(conv, group).run();
}

}  // namespace tandem::detail
