#include "tandem/study/cluster_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::string ClusterCase::network_name() const {
  if (is_perceptron()) return fmt::format("{}", fmt::join(network.layers, ","));
  return fmt::format("{} {}", network.model, side);
}

std::string ClusterCase::name() const {
  return fmt::format("{} batch {}", network_name(), batch_size);
}

ClusterCase parse_cluster_case(std::string_view text) {
  constexpr std::int64_t max_side = 1024, max_batch = 65536, max_layer = 1 << 16;
  const std::vector<std::string_view> words = words_of(text);
  const std::size_t count = words.size();
  const auto number = [&](std::size_t i) { return parse_number<std::int64_t>(words[i]).value_or(0); };
  bool valid = (count == 3 || count == 4) && words[count - 2] == "batch";
  ClusterCase parsed;
  if (valid) parsed.batch_size = number(count - 1);
  if (valid && count == 3) {
    parsed.network.layers = parse_numbers<std::int64_t>(words[0], ',').value_or(std::vector<std::int64_t>{});
    valid = parsed.network.layers.size() >= 2 && std::ranges::min(parsed.network.layers) >= 1 &&
            std::ranges::max(parsed.network.layers) <= max_layer;
  } else if (valid) {
    const ModelRow* const model = models().find(std::string(words[0]));
    parsed.side = number(1);
    valid = model && !model->flat_input && parsed.side >= model->min_side && parsed.side <= max_side;
    parsed.network = {.model = std::string(words[0]), .channels = 3, .classes = ClusterCase::classes};
  }
  check(valid && parsed.batch_size >= 1 && parsed.batch_size <= max_batch,
        "[study cluster] expected a case such as \"resnet18 224 batch 32\", got \"{}\"", text);
  return parsed;
}

ClusterSize parse_cluster_size(std::string_view text) {
  constexpr int max_ranks = 1 << 20;
  const auto numbers = parse_numbers<int>(text, 'x');
  check(numbers && numbers->size() == 2 && std::ranges::min(*numbers) >= 1 &&
            (*numbers)[1] <= max_ranks / (*numbers)[0],
        "[study cluster] expected nodes and the ranks of each, such as 8x128, got '{}'", text);
  return {.nodes = (*numbers)[0], .ranks = (*numbers)[1]};
}

}  // namespace tandem
