// A case of the study of devices: a perceptron or the small convolutional network (nn/cnn.h) and a batch
// size, as text and as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct TrainingCase {
  // What the study trains on has the size of Fashion-MNIST.
  static constexpr std::int64_t samples = 60000, side = 28, inputs = side * side, classes = 10;

  std::vector<std::int64_t> layers;  // sizes from the inputs to the classes; none: the convolutional network
  std::int64_t batch_size = 0;

  bool is_convolutional() const { return layers.empty(); }
  std::string network() const;  // "784,200,10", "cnn"
  std::string name() const;     // "784,200,10 batch 16"
  double weights() const;       // of all matrices and filters
  // Multiplications and additions of a sample in all matrix products, forward and backward; of a convolution
  // by its definition.
  double operations() const;
};

// Error for a text that is no such case.
TrainingCase parse_training_case(std::string_view text);

}  // namespace tandem
