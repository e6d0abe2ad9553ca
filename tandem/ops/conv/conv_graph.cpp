#include "tandem/ops/conv/conv_graph.h"

#include <cstdint>
#include <functional>

namespace tandem::detail {

std::size_t ConvGraphHash::operator()(const ConvGraph& graph) const {
  const Conv2dPlan& p = graph.plan;
  std::size_t hash = static_cast<std::size_t>(graph.device);
  for (const std::int64_t value : {p.images,
                                   p.channels,
                                   p.filters,
                                   p.groups,
                                   p.in.y,
                                   p.in.x,
                                   p.kernel.y,
                                   p.kernel.x,
                                   p.window.stride.y,
                                   p.window.stride.x,
                                   p.window.padding.y,
                                   p.window.padding.x,
                                   p.window.dilation.y,
                                   p.window.dilation.x,
                                   static_cast<std::int64_t>(p.dtype),
                                   static_cast<std::int64_t>(p.precision),
                                   static_cast<std::int64_t>(graph.pass),
                                   graph.bias ? static_cast<std::int64_t>(*graph.bias) : std::int64_t{-1},
                                   std::int64_t{graph.residual},
                                   std::int64_t{graph.relu}})
    hash ^= std::hash<std::int64_t>{}(value) + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash;
}

std::string fused_name(const ConvGraph& graph) {
  std::string name;
  const auto add = [&](bool exists, const char* part) {
    if (!exists) return;
    if (!name.empty()) name += ' ';
    name += part;
  };
  add(graph.bias.has_value(), graph.bias == DType::f32 ? "f32-bias" : "bias");
  add(graph.residual, "residual");
  add(graph.relu, "relu");
  return name;
}

}  // namespace tandem::detail
