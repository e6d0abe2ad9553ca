#include "tandem/study/training_case.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/nn/cnn.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

struct Layer {
  double weights;
  double positions;  // where the filters of a convolution are applied; 1 for a linear layer
};

std::vector<Layer> layers_of(const TrainingCase& training) {
  std::vector<Layer> all;
  for (std::size_t i = 0; i + 1 < training.layers.size(); ++i)
    all.push_back({static_cast<double>(training.layers[i]) * static_cast<double>(training.layers[i + 1]), 1});
  if (!training.is_convolutional()) return all;
  const CnnOptions network{.classes = TrainingCase::classes};
  double in = 1, out = static_cast<double>(network.width), side = TrainingCase::side;
  for (int stage = 0; stage < 3; ++stage, out *= 2, side = std::floor(side / 2))
    for (int i = 0; i < 2; ++i, in = out) all.push_back({9 * in * out, side * side});
  all.push_back({in * TrainingCase::classes, 1});
  return all;
}

}  // namespace

std::string TrainingCase::network() const {
  if (is_convolutional()) return "cnn";
  return fmt::format("{}", fmt::join(layers, ","));
}

std::string TrainingCase::name() const {
  return fmt::format("{} batch {}", network(), batch_size);
}

double TrainingCase::weights() const {
  double sum = 0;
  for (const Layer& layer : layers_of(*this)) sum += layer.weights;
  return sum;
}

double TrainingCase::operations() const {
  // Three products per layer; the first layer needs no gradient of its inputs.
  const std::vector<Layer> all = layers_of(*this);
  double products = -all.front().weights * all.front().positions;
  for (const Layer& layer : all) products += 3 * layer.weights * layer.positions;
  return 2 * products;
}

TrainingCase parse_training_case(std::string_view text) {
  TrainingCase parsed;
  constexpr std::string_view word = " batch ";
  const std::size_t end = std::min(text.find(word), text.size());
  const std::string_view network = text.substr(0, end);
  const bool convolutional = network == "cnn";
  bool valid = end < text.size();
  if (valid) parsed.batch_size = parse_number<std::int64_t>(text.substr(end + word.size())).value_or(0);
  if (!convolutional) {
    parsed.layers = parse_numbers<std::int64_t>(network, ',').value_or(std::vector<std::int64_t>{});
    valid = valid && parsed.layers.size() >= 2 && std::ranges::min(parsed.layers) >= 1;
  }
  check(valid && parsed.batch_size >= 1,
        "[study devices] expected a case such as \"784,200,10 batch 16\", got \"{}\"", text);
  check(convolutional ||
            (parsed.layers.front() == TrainingCase::inputs && parsed.layers.back() == TrainingCase::classes),
        "[study devices] expected layers from {} pixels to {} classes, got {}", TrainingCase::inputs,
        TrainingCase::classes, parsed.network());
  check(parsed.batch_size <= TrainingCase::samples,
        "[study devices] expected a batch size from 1 to {}, got {}", TrainingCase::samples,
        parsed.batch_size);
  return parsed;
}

}  // namespace tandem
