#include "tandem/ops/conv/cudnn_plan_table.h"

#include <algorithm>

namespace tandem::detail {
namespace {

using enum ConvPass;
using enum DType;

// Pass, what is fused, dtype, images from and to, size, channels, filters, kernel, stride, padding, engine;
// the microseconds for 256 images of cuDNN's first choice and of this one. Printed by `ops_conv_plans 256`,
// for ResNet-18 and ResNet-50.
// clang-format off
constexpr PreferredEngine h200_cudnn_9_14[] = {
    {forward, "", bf16, 128, 1024, 14, 1024, 2048, 1, 2, 0, "eng62_k2=0_k13=1_k18=0_k25=1_k27=2_k28=1"},  // 94.5 -> 86.0
    {forward, "", bf16, 128, 1024, 28, 128, 128, 3, 1, 1, "eng62_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 100.0 -> 90.5
    {forward, "", bf16, 128, 1024, 56, 64, 64, 1, 1, 0, "eng58_k25=1"},  // 58.7 -> 56.9
    {forward, "", bf16, 128, 1024, 56, 64, 128, 1, 2, 0, "eng62_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 292.4 -> 28.2
    {forward, "", bf16, 128, 1024, 56, 64, 256, 1, 1, 0, "eng62_k2=4_k13=1_k18=0_k25=0_k27=1_k28=2"},  // 188.5 -> 144.7
    {forward, "", bf16, 128, 1024, 56, 128, 128, 3, 2, 1, "eng62_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 99.7 -> 97.6
    {forward, "", bf16, 128, 1024, 56, 256, 128, 1, 1, 0, "eng62_k2=7_k13=1_k18=0_k25=1_k27=4_k28=1"},  // 193.5 -> 159.1
    {forward, "bias relu", bf16, 128, 1024, 14, 1024, 512, 1, 1, 0, "eng41_k2=0_k13=1_k18=0_k25=1_k27=2_k28=1"},  // 97.3 -> 94.6
    {forward, "bias relu", bf16, 128, 1024, 28, 128, 128, 3, 1, 1, "eng41_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 90.6 -> 87.3
    {forward, "bias relu", bf16, 128, 1024, 28, 512, 128, 1, 1, 0, "eng41_k2=0_k13=1_k18=0_k25=0_k27=8_k28=1"},  // 85.6 -> 70.7
    {forward, "bias relu", bf16, 128, 1024, 28, 512, 256, 1, 1, 0, "eng41_k2=0_k13=1_k18=0_k25=0_k27=4_k28=2"},  // 101.0 -> 97.6
    {forward, "bias relu", bf16, 128, 1024, 56, 128, 128, 3, 2, 1, "eng41_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 117.4 -> 104.5
    {forward, "bias relu", bf16, 128, 1024, 56, 256, 64, 1, 1, 0, "eng41_k2=1_k13=1_k18=0_k25=1_k27=7_k28=1"},  // 133.1 -> 127.0
    {forward, "bias relu", bf16, 128, 1024, 56, 256, 128, 1, 1, 0, "eng41_k2=0_k13=1_k18=0_k25=0_k27=8_k28=1"},  // 188.2 -> 153.4
    {forward, "bias residual relu", bf16, 128, 1024, 7, 512, 2048, 1, 1, 0, "eng41_k2=0_k13=1_k18=0_k25=1_k27=2_k28=1"},  // 59.6 -> 58.3
    {forward, "bias residual relu", bf16, 128, 1024, 28, 128, 128, 3, 1, 1, "eng41_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 102.0 -> 99.0
    {forward, "bias residual relu", bf16, 128, 1024, 56, 64, 256, 1, 1, 0, "eng39_k25=2"},  // 469.6 -> 261.7
    {forward, "bias", bf16, 128, 1024, 14, 1024, 2048, 1, 2, 0, "eng41_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 82.8 -> 79.4
    {forward, "bias", bf16, 128, 1024, 56, 64, 128, 1, 2, 0, "eng41_k2=3_k13=1_k18=0_k25=1_k27=2_k28=1"},  // 347.7 -> 27.9
    {forward, "bias", bf16, 128, 1024, 56, 64, 256, 1, 1, 0, "eng41_k2=3_k13=1_k18=0_k25=1_k27=1_k28=2"},  // 196.1 -> 152.4
    {input_gradient, "", bf16, 128, 1024, 7, 2048, 512, 1, 1, 0, "eng67_k2=0_k13=1_k18=0_k25=1_k27=2_k28=1"},  // 46.6 -> 44.7
    {input_gradient, "", bf16, 128, 1024, 14, 256, 512, 1, 2, 0, "eng73_k2=6_k13=1_k18=1_k27=2_k28=1"},  // 22.8 -> 21.5
    {input_gradient, "", bf16, 128, 1024, 14, 1024, 2048, 1, 2, 0, "eng73_k2=0_k13=1_k18=1_k27=1_k28=2"},  // 116.7 -> 111.4
    {input_gradient, "", bf16, 128, 1024, 28, 128, 128, 3, 1, 1, "eng67_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 92.1 -> 86.2
    {input_gradient, "", bf16, 128, 1024, 28, 128, 256, 1, 2, 0, "eng73_k2=3_k13=1_k18=1_k27=2_k28=1"},  // 35.1 -> 33.0
    {input_gradient, "", bf16, 128, 1024, 28, 512, 1024, 1, 2, 0, "eng73_k2=0_k13=1_k18=1_k27=1_k28=2"},  // 142.7 -> 137.1
    {input_gradient, "", bf16, 128, 1024, 56, 64, 64, 3, 1, 1, "eng67_k2=4_k13=0_k18=0_k25=0_k27=8_k28=1"},  // 158.3 -> 142.0
    {input_gradient, "", bf16, 128, 1024, 56, 64, 256, 1, 1, 0, "eng67_k2=5_k13=1_k18=0_k25=1_k27=8_k28=1"},  // 126.5 -> 123.8
    {input_gradient, "", bf16, 128, 1024, 56, 256, 128, 1, 1, 0, "eng67_k2=0_k13=1_k18=0_k25=0_k27=1_k28=1"},  // 184.7 -> 169.6
    {input_gradient, "", bf16, 128, 1024, 56, 256, 512, 1, 2, 0, "eng73_k2=6_k13=1_k18=1_k27=2_k28=1"},  // 192.6 -> 182.9
    {weight_gradient, "", bf16, 128, 1024, 7, 512, 512, 3, 1, 1, "eng65_k2=0_k13=1_k18=1_k25=0_k27=1_k28=2"},  // 89.8 -> 86.5
    {weight_gradient, "", bf16, 128, 1024, 7, 512, 2048, 1, 1, 0, "eng62_k25=0"},  // 40.6 -> 39.5
    {weight_gradient, "", bf16, 128, 1024, 7, 2048, 512, 1, 1, 0, "eng62_k25=0"},  // 49.8 -> 43.2
    {weight_gradient, "", bf16, 128, 1024, 14, 256, 512, 1, 2, 0, "eng65_k2=9_k13=1_k18=1_k25=0_k27=4_k28=1"},  // 25.0 -> 24.4
    {weight_gradient, "", bf16, 128, 1024, 14, 256, 512, 3, 2, 1, "eng65_k2=1_k13=1_k18=1_k25=0_k27=2_k28=4"},  // 59.2 -> 56.5
    {weight_gradient, "", bf16, 128, 1024, 28, 128, 256, 1, 2, 0, "eng65_k2=1_k13=1_k18=1_k25=0_k27=1_k28=3"},  // 28.5 -> 24.5
    {weight_gradient, "", bf16, 128, 1024, 28, 128, 512, 1, 1, 0, "eng65_k2=7_k13=1_k18=1_k25=0_k27=8_k28=1"},  // 87.2 -> 81.7
    {weight_gradient, "", bf16, 128, 1024, 28, 512, 1024, 1, 2, 0, "eng65_k2=0_k13=1_k18=1_k25=0_k27=1_k28=2"},  // 101.3 -> 94.3
    {weight_gradient, "", bf16, 128, 1024, 56, 64, 128, 1, 2, 0, "eng65_k2=1_k13=1_k18=1_k25=0_k27=1_k28=3"},  // 65.6 -> 38.4
    {weight_gradient, "", bf16, 128, 1024, 56, 256, 128, 1, 1, 0, "eng65_k2=5_k13=1_k18=1_k25=0_k27=2_k28=4"},  // 183.2 -> 165.2
    {weight_gradient, "", bf16, 128, 1024, 115, 16, 64, 4, 1, 0, "eng49_k0=127_k2=7_k5=3_k14=5"},  // 952.9 -> 457.0
};
// clang-format on

constexpr PreferredEngines tables[] = {{"NVIDIA H200", "9.14.0", h200_cudnn_9_14}};

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
