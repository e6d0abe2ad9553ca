// The left factor is packed into groups of a few rows and the right one into panels of two vectors of columns
// (product_tile.h). All of the right factor is packed first; then blocks of rows × some panels are computed
// independently. A product of two operands that are both stored along the inner dimension needs a transposed
// copy of one of them: the product is computed as (Bᵀ · Aᵀ)ᵀ where that is cheaper, which does not change
// bits.
#include "tandem/ops/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/gemm_pack.h"

namespace tandem::detail {
namespace {

// Below this many multiply-adds, a second thread costs more time than it saves.
constexpr double min_work = 50'000;
// Rows and panels of a block: its packed rows and its sums fit the L2 cache.
constexpr std::int64_t max_block_rows = 96, max_block_panels = 16;

template <class T>
struct Product {
  Lines<T> left, right;
  std::int64_t inner;
  T* out;
  std::int64_t row_step, column_step;  // of `out`; one of them is 1
  bool symmetric = false;

  bool is_transposed() const { return column_step != 1; }
};

template <class T>
Product<T> as_written(const Gemm<T>& gemm) {
  const auto lines = [](const GemmOperand<T>& operand, std::int64_t count, bool inner_is_rows) {
    const bool along_inner = operand.transposed == inner_is_rows;
    return Lines<T>{operand.data, count, along_inner ? operand.leading_dimension : 1,
                    along_inner ? 1 : operand.leading_dimension};
  };
  return {lines(gemm.a, gemm.size.m, false),
          lines(gemm.b, gemm.size.n, true),
          gemm.size.k,
          gemm.c,
          gemm.leading_dimension_c,
          1,
          gemm.symmetric};
}

template <class T>
Product<T> transposed(const Product<T>& p) {
  return {p.right, p.left, p.inner, p.out, p.column_step, p.row_step};
}

// In multiply-adds of whole vectors, roughly.
template <class T>
double cost(const Product<T>& p) {
  const std::int64_t lanes = native_panel_columns<T>() / 2;
  const auto rows = static_cast<double>(round_up(p.left.count, native_gemm_rows<T>()));
  const auto columns = static_cast<double>(round_up(p.right.count, lanes));
  const auto inner = static_cast<double>(p.inner), width = static_cast<double>(lanes);
  const double packing = columns * inner * (p.right.along_inner() ? 1.0 : 0.2);
  return rows * columns * inner / width + packing + (p.is_transposed() ? rows * columns : 0.0);
}

template <class T>
class BlockProduct {
 public:
  explicit BlockProduct(const Product<T>& product) : p_(product) {}

  // Rows from `row` on × panels [first_panel, last_panel), which are packed in `panels`. `left` has room for
  // the packed rows, `sums` for the sums of the block.
  template <std::size_t bytes>
  [[gnu::always_inline]] void run(std::int64_t row, std::int64_t rows, std::int64_t first_panel,
                                  std::int64_t last_panel, const T* panels, T* left, T* sums) const {
    constexpr std::int64_t width = panel_columns<T, bytes>;
    if (p_.symmetric) last_panel = std::min(last_panel, ceil_div(row + rows, width));
    if (first_panel >= last_panel) return;
    constexpr std::int64_t group_rows = gemm_rows<T, bytes>;
    const std::int64_t groups = ceil_div(rows, group_rows), panel_sums = groups * group_rows * width;
    for (std::int64_t begin = 0; begin < p_.inner; begin += gemm_inner_block<T>) {
      const std::int64_t inner = std::min(gemm_inner_block<T>, p_.inner - begin);
      pack_left<bytes>(row, groups, begin, inner, left);
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel) {
        const T* const right = panels + ((panel - first_panel) * p_.inner + begin) * width;
        T* const target = sums + (panel - first_panel) * panel_sums;
        if (p_.right.count - panel * width <= width / 2)
          add_panel<bytes, 1>(row, rows, panel, left, right, inner, begin == 0, target);
        else
          add_panel<bytes, 2>(row, rows, panel, left, right, inner, begin == 0, target);
      }
    }
    if (p_.symmetric) mirror<bytes>(row, rows, first_panel * width, std::min(last_panel * width, row));
    if (!p_.is_transposed()) return;
    for (std::int64_t panel = first_panel; panel < last_panel; ++panel)
      write<bytes>(sums + (panel - first_panel) * panel_sums, row, rows, panel * width);
  }

 private:
  // Whether a group is packed as [inner][row].
  template <std::size_t bytes>
  bool inner_major() const {
    return is_inner_major<bytes> || !p_.left.along_inner();
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void pack_left(std::int64_t row, std::int64_t groups, std::int64_t begin,
                                        std::int64_t inner, T* left) const {
    constexpr int group_rows = gemm_rows<T, bytes>;
    if (!p_.left.along_inner()) return pack_groups<group_rows>(left, groups, p_.left, row, begin, inner);
    for (std::int64_t group = 0; group < groups; ++group) {
      T* const to = left + group * group_step(group_rows, inner);
      if constexpr (is_inner_major<bytes>)
        pack_inner_major<bytes>(to, group_rows, p_.left, row + group * group_rows, begin, inner);
      else
        pack_rows<group_rows>(to, p_.left, row + group * group_rows, begin, inner);
    }
  }

  // Adds the products of a block of the inner dimension to rows × a panel: in the result, or in `sums` if the
  // result is transposed.
  template <std::size_t bytes, int vectors>
  [[gnu::always_inline]] void add_panel(std::int64_t row, std::int64_t rows, std::int64_t panel,
                                        const T* left, const T* right, std::int64_t inner, bool is_first,
                                        T* sums) const {
    using Tile = ProductTile<T, bytes, vectors, gemm_rows<T, bytes>>;
    const bool direct = !p_.is_transposed();
    T* const target = direct ? p_.out + row * p_.row_step + panel * Tile::columns : sums;
    const std::int64_t step = direct ? p_.row_step : Tile::columns;
    const std::int64_t target_rows = direct ? rows : round_up(rows, Tile::rows);
    // Of a symmetric result, what is right of the diagonal block comes from mirror().
    const std::int64_t last = p_.symmetric ? std::min(p_.right.count, row + rows) : p_.right.count;
    const std::int64_t columns = direct ? last - panel * Tile::columns : Tile::columns;
    for (std::int64_t r = 0; r < target_rows; r += Tile::rows) {
      T* const to = target + r * step;
#pragma GCC unroll 8
      for (int i = 0; i < Tile::rows; ++i)  // the memory is needed after the loop over the inner dimension
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) __builtin_prefetch(to + i * step + v * Tile::lanes, 1);
      Tile tile;
      const T* const group = left + r / Tile::rows * group_step(Tile::rows, inner);
      if (inner_major<bytes>())
        tile.add_columns(group, Tile::rows, right, inner);
      else
        tile.add_group(group, 0, right, inner);
      write_tile(tile, to, step, target_rows - r, columns, is_first);
    }
  }

  // Stores the first `rows` rows and `columns` columns of a tile, or adds them to what is there.
  template <class Tile>
  [[gnu::always_inline]] static void write_tile(Tile& tile, T* to, std::int64_t step, std::int64_t rows,
                                                std::int64_t columns, bool is_first) {
    if (rows >= Tile::rows && columns >= Tile::used_columns) {
      if (!is_first) tile.add(to, step);
      return tile.store(to, step);
    }
    alignas(64) T values[Tile::rows * Tile::used_columns];
    tile.store(values, Tile::used_columns);
    for (std::int64_t r = 0; r < std::min<std::int64_t>(rows, Tile::rows); ++r)
      for (std::int64_t c = 0; c < std::min(columns, Tile::used_columns); ++c) {
        const T value = values[r * Tile::used_columns + c];
        to[r * step + c] = is_first ? value : to[r * step + c] + value;
      }
  }

  // Copies columns [first, last) of a symmetric result, all left of the diagonal block, to their other place.
  template <std::size_t bytes>
  [[gnu::always_inline]] void mirror(std::int64_t row, std::int64_t rows, std::int64_t first,
                                     std::int64_t last) const {
    if (first >= last) return;
    pack_transposed<bytes>(p_.out + first * p_.row_step + row, p_.row_step,
                           Lines<T>{p_.out + row * p_.row_step + first, rows, p_.row_step, 1}, 0, rows, 0,
                           last - first);
  }

  // Copies the sums of a panel to the transposed result.
  template <std::size_t bytes>
  [[gnu::always_inline]] void write(const T* sums, std::int64_t row, std::int64_t rows,
                                    std::int64_t column) const {
    constexpr std::int64_t width = panel_columns<T, bytes>;
    const std::int64_t columns = std::min(width, p_.right.count - column);
    T* const to = p_.out + row * p_.row_step + column * p_.column_step;
    pack_transposed<bytes>(to, p_.column_step, Lines<T>{sums, rows, width, 1}, 0, rows, 0, columns);
  }

  const Product<T>& p_;
};

// How the rows and panels of a product are divided into blocks: large ones, but enough for all threads.
struct Blocks {
  std::int64_t rows, panels;

  // Rows are divided in whole groups.
  Blocks(std::int64_t row_count, std::int64_t panel_count, std::int64_t group, std::int64_t threads)
      : rows(std::min(max_block_rows, round_up(row_count, group))),
        panels(std::min(max_block_panels, panel_count)) {
    if (threads == 1) return;
    constexpr std::int64_t min_rows = 32;
    const auto count = [&] { return ceil_div(row_count, rows) * ceil_div(panel_count, panels); };
    while (count() < 3 * threads && (panels > 1 || rows > group)) {
      if (panels > 2 || (rows <= min_rows && panels > 1))
        panels = ceil_div(panels, 2);
      else
        rows = round_up(rows / 2, group);
    }
  }
};

// Packs block `index` of the inner dimension of a panel.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void pack_panel(T* to, const Product<T>& p, std::int64_t panel,
                                              std::int64_t index) {
  constexpr std::int64_t width = panel_columns<T, bytes>;
  const std::int64_t first = index * gemm_inner_block<T>;
  pack_inner_major<bytes>(to + first * width, width, p.right, panel * width, first,
                          std::min(gemm_inner_block<T>, p.inner - first));
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& gemm) {
  const Product<T> written = as_written(gemm), other = transposed(written);
  const Product<T>& p = !gemm.symmetric && cost(other) < cost(written) ? other : written;
  const double work =
      static_cast<double>(p.left.count) * static_cast<double>(p.right.count) * static_cast<double>(p.inner);
  const std::int64_t threads = work < min_work ? 1 : thread_count();
  const ThreadLimit limit(static_cast<int>(threads));
  const std::int64_t width = native_panel_columns<T>(), panels = ceil_div(p.right.count, width);
  const std::int64_t inner_blocks = ceil_div(p.inner, gemm_inner_block<T>);
  const std::int64_t group = native_gemm_rows<T>();
  const Blocks blocks(p.left.count, panels, group, threads);
  const std::int64_t row_blocks = ceil_div(p.left.count, blocks.rows),
                     panel_blocks = ceil_div(panels, blocks.panels);
  // A panel that is used once is packed by the thread that uses it.
  const bool shared = row_blocks > 1;
  const Buffer all_panels = make_scratch<T>(shared ? panels * width * p.inner : 0);
  if (shared)
    parallel_for(panels * inner_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t panel = unit / inner_blocks;
          pack_panel<bytes>(as<T>(all_panels) + panel * p.inner * width, p, panel, unit % inner_blocks);
        }
      });
    });
  const BlockProduct<T> block(p);
  parallel_tasks(row_blocks * panel_blocks, 1, [&] {
    return [&,
            left = make_scratch<T>(blocks.rows / group *
                                   group_step(group, std::min(p.inner, gemm_inner_block<T>))),
            sums = make_scratch<T>(p.is_transposed() ? blocks.rows * blocks.panels * width : 0),
            own_panels = make_scratch<T>(shared ? 0 : blocks.panels * width * p.inner)](std::int64_t begin,
                                                                                        std::int64_t end) {
      with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t row = unit / panel_blocks * blocks.rows,
                             first = unit % panel_blocks * blocks.panels,
                             last = std::min(first + blocks.panels, panels);
          if (!shared)
            for (std::int64_t i = 0; i < (last - first) * inner_blocks; ++i)
              pack_panel<bytes>(as<T>(own_panels) + i / inner_blocks * p.inner * width, p,
                                first + i / inner_blocks, i % inner_blocks);
          block.template run<bytes>(row, std::min(blocks.rows, p.left.count - row), first, last,
                                    shared ? as<T>(all_panels) + first * p.inner * width : as<T>(own_panels),
                                    as<T>(left), as<T>(sums));
        }
      });
    };
  });
}

template void gemm<float>(const Gemm<float>&);
template void gemm<double>(const Gemm<double>&);

}  // namespace tandem::detail
