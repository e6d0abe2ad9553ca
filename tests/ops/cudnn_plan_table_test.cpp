#include "tandem/ops/conv/cudnn_plan_table.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <string>

namespace tandem::detail {
namespace {

ConvGraph graph_of(const PreferredEngine& row) {
  const std::int64_t out = (row.size + 2 * row.padding - row.kernel) / row.stride + 1;
  const auto has = [&](const char* part) { return row.fused.find(part) != std::string_view::npos; };
  return {.plan = {.images = row.min_images,
                   .channels = row.channels,
                   .filters = row.filters,
                   .in = row.size,
                   .kernel = row.kernel,
                   .out = out,
                   .window = {.stride = row.stride, .padding = row.padding},
                   .dtype = row.dtype,
                   .precision = row.dtype == DType::f32 ? MatmulPrecision::tf32 : MatmulPrecision::bf16},
          .pass = row.pass,
          .bias = has("bias") ? std::optional(DType::bf16) : std::nullopt,
          .residual = has("residual"),
          .relu = has("relu")};
}

constexpr PreferredEngine rows[] = {
    {ConvPass::forward, "bias residual relu", DType::bf16, 128, 1024, 56, 64, 64, 3, 1, 1, "eng41_k2=11"},
    {ConvPass::forward, "", DType::bf16, 128, 1024, 56, 64, 64, 3, 1, 1, "eng1"},
    {ConvPass::weight_gradient, "", DType::bf16, 1, 1, 56, 64, 64, 3, 1, 1, "eng2"},
    {ConvPass::forward, "", DType::f32, 1, 8, 56, 64, 64, 3, 1, 1, "eng3"}};
constexpr PreferredEngine other_rows[] = {
    {ConvPass::forward, "", DType::bf16, 128, 1024, 56, 64, 64, 3, 1, 1, "eng9"}};
constexpr PreferredEngines tables[] = {{"GPU", "9.1.0", rows}, {"GPU", "9.2.0", other_rows}};

TEST(CudnnPlanTable, RowOfTheGraph_NamesTheEngine) {
  for (const PreferredEngine& row : rows)
    EXPECT_EQ(preferred_engine(tables, "GPU", "9.1.0", graph_of(row)), row.engine);
  EXPECT_EQ(preferred_engine(tables, "GPU", "9.2.0", graph_of(rows[1])), "eng9");
  ConvGraph many = graph_of(rows[0]);
  many.plan.images = 1024;
  EXPECT_EQ(preferred_engine(tables, "GPU", "9.1.0", many), "eng41_k2=11");
}

TEST(CudnnPlanTable, OtherGpuVersionOrGraph_HasNoEngine) {
  const ConvGraph known = graph_of(rows[0]);
  EXPECT_EQ(preferred_engine(tables, "GPU 2", "9.1.0", known), "");
  EXPECT_EQ(preferred_engine(tables, "GPU", "9.1.1", known), "");
  EXPECT_EQ(preferred_engine(tables, "GPU", "9.2.0", known), "");
  EXPECT_EQ(preferred_engine({}, "GPU", "9.1.0", known), "");
  const auto changed = [&](auto change) {
    ConvGraph graph = known;
    change(graph);
    return preferred_engine(tables, "GPU", "9.1.0", graph);
  };
  EXPECT_EQ(changed([](ConvGraph&) {}), "eng41_k2=11");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.images = 127; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.images = 1025; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.in.x = 57; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.channels = 32; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.filters = 32; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.groups = 2; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.kernel.y = 1; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.window.stride = 2; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.window.padding.y = 0; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.window.dilation = 2; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.plan.dtype = DType::f32; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.bias = DType::f32; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.relu = false; }), "");
  EXPECT_EQ(changed([](ConvGraph& g) { g.pass = ConvPass::input_gradient; }), "");
  ConvGraph full = graph_of(rows[3]);  // a row of f32 is one of TF32
  full.plan.precision = MatmulPrecision::fp32;
  EXPECT_EQ(preferred_engine(tables, "GPU", "9.1.0", full), "");
}

TEST(CudnnPlanTable, StoredRows_AreValidAndReachable) {
  const std::regex engine("eng[0-9]+(_k[0-9]+=[0-9]+)*");
  for (const PreferredEngines& table : preferred_engines())
    for (const PreferredEngine& row : table.rows) {
      SCOPED_TRACE(std::string(row.engine));
      EXPECT_TRUE(std::regex_match(std::string(row.engine), engine));
      EXPECT_LE(row.min_images, row.max_images);
      EXPECT_EQ(fused_name(graph_of(row)), row.fused);
      // Not hidden by a row before it.
      const std::string_view found = preferred_engine({&table, 1}, table.gpu, table.cudnn, graph_of(row));
      EXPECT_EQ(found.data(), row.engine.data());
    }
}

}  // namespace
}  // namespace tandem::detail
