// The convolutions with which chains are tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/ops/conv/chain_stages.h"

namespace tandem::detail {

struct ChainLink {
  std::int64_t channels, filters, kernel, stride;
  std::size_t input;
  std::optional<std::size_t> residual = {};
  bool has_relu = true;
};
// Two residual blocks, of which one changes the size, and a bottleneck.
inline const ChainLink chain_links[] = {
    {64, 64, 3, 1, 0},    {64, 64, 3, 1, 1, 0}, {64, 96, 3, 2, 2}, {64, 96, 1, 2, 2, {}, false},
    {96, 96, 3, 1, 3, 4}, {96, 40, 1, 1, 5},    {40, 40, 3, 1, 6}, {40, 96, 1, 1, 7, 5}};

// `convs` are those of the links, and must outlive the steps.
template <class Conv>
std::vector<ConvStep<Conv>> steps_of_links(const std::vector<Conv>& convs) {
  std::vector<ConvStep<Conv>> steps;
  for (std::size_t i = 0; i < convs.size(); ++i)
    steps.push_back({&convs[i], chain_links[i].has_relu ? FusedActivation::relu : FusedActivation::none,
                     chain_links[i].input, chain_links[i].residual});
  return steps;
}

}  // namespace tandem::detail
