// A case of the devices study: a perceptron or the small convolutional network (nn/cnn.h), and a batch size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct TrainingCase {
  // The training data has the size of Fashion-MNIST.
  static constexpr std::int64_t samples = 60000, side = 28, inputs = side * side, classes = 10;

  std::vector<std::int64_t> layers;  // sizes from inputs to classes; empty: the convolutional network
  std::int64_t batch_size = 0;

  bool is_convolutional() const { return layers.empty(); }
  std::string network() const;  // "784,200,10", "cnn"
  std::string name() const;     // "784,200,10 batch 16"
  double weights() const;       // number of weights in all matrices and filters
  // Multiplications and additions per sample, forward and backward; convolutions counted by their definition.
  double operations() const;
};

// Throws Error if the text is not such a case.
TrainingCase parse_training_case(std::string_view text);

}  // namespace tandem
