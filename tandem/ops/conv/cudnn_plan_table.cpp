#include "tandem/ops/conv/cudnn_plan_table.h"

#include <algorithm>

namespace tandem::detail {
namespace {

using enum ConvPass;
using enum DType;

// pass, what is fused, dtype, images from and to, size, channels, filters, kernel, stride, padding, engine.
// Printed by `ops_conv_plans 256`. An array as soon as it has rows.
constexpr std::span<const PreferredEngine> h200_cudnn_9_19;

constexpr PreferredEngines tables[] = {{"NVIDIA H200", "9.19.0", h200_cudnn_9_19}};

bool is_row_of(const PreferredEngine& row, const ConvGraph& graph) {
  const Conv2dPlan& plan = graph.plan;
  const auto square = [](std::int64_t side) { return YX{side, side}; };
  return row.pass == graph.pass && row.dtype == plan.dtype &&
         (plan.dtype == DType::bf16 || plan.precision == MatmulPrecision::tf32) &&
         row.min_images <= plan.images && plan.images <= row.max_images && row.channels == plan.channels &&
         row.filters == plan.filters && square(row.size) == plan.in && square(row.kernel) == plan.kernel &&
         square(row.stride) == plan.window.stride && square(row.padding) == plan.window.padding &&
         plan.window.dilation == square(1) && plan.groups == 1 && row.fused == fused_name(graph);
}

}  // namespace

std::span<const PreferredEngines> preferred_engines() {
  return tables;
}

std::string_view preferred_engine(std::span<const PreferredEngines> all, std::string_view gpu,
                                  std::string_view cudnn, const ConvGraph& graph) {
  for (const PreferredEngines& table : all) {
    if (table.gpu != gpu || table.cudnn != cudnn) continue;
    const auto found =
        std::ranges::find_if(table.rows, [&](const PreferredEngine& row) { return is_row_of(row, graph); });
    if (found != table.rows.end()) return found->engine;
  }
  return {};
}

}  // namespace tandem::detail
