// Which of cuDNN's engines are preferred to the first one of its heuristic ranking. The choice is data,
// measured once by ops_conv_plans (bench/ops/conv_plans.cpp) and stored here, and not a measurement at run
// time: the same convolution gives the same bits in every run. Engines and their knobs have the same meaning
// only within one version of cuDNN, and the fastest ones are those of one GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tandem/ops/conv/conv_graph.h"

namespace tandem::detail {

// Square images, windows and strides, no dilation, no groups.
struct PreferredEngine {
  ConvPass pass;
  std::string_view fused;  // fused_name()
  DType dtype;
  std::int64_t min_images;
  std::int64_t max_images;
  std::int64_t size;
  std::int64_t channels;
  std::int64_t filters;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::string_view engine;  // engine_name(), cudnn_plan.cuh
};

struct PreferredEngines {
  std::string_view gpu;    // GpuIdentity::name
  std::string_view cudnn;  // GpuIdentity::cudnn
  std::span<const PreferredEngine> rows;
};

std::span<const PreferredEngines> preferred_engines();

// Empty where the tables have none.
std::string_view preferred_engine(std::span<const PreferredEngines> tables, std::string_view gpu,
                                  std::string_view cudnn, const ConvGraph& graph);

}  // namespace tandem::detail
