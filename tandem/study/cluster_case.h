// A case of the cluster study: a network, the size of its images, and the size of the whole batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/nn/architecture.h"
#include "tandem/study/options.h"

namespace tandem {

struct ClusterCase {
  static constexpr std::int64_t classes = 10;

  Architecture network;
  std::int64_t side = 0;  // height and width of an image; 0 for a perceptron, whose layers say it
  std::int64_t batch_size = 0;

  bool is_perceptron() const { return side == 0; }
  std::string network_name() const;  // "resnet18 224", "784,200,10"
  std::string name() const;          // "resnet18 224 batch 32"
};

// Throws Error if the text is not such a case.
ClusterCase parse_cluster_case(std::string_view text);

// "8x128": nodes, and the ranks of each. Throws Error for other texts.
ClusterSize parse_cluster_size(std::string_view text);

}  // namespace tandem
