// Numbers that Tandem's tests and PyTorch's side (torch_resnet.py, the same formulas) make each for itself,
// from a name and the number of the element, exact in f32: weights and images of any size need not be stored.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/nn/module.h"

namespace tandem::golden {

inline constexpr std::uint64_t hash_step = 0x9E3779B97F4A7C15;

inline std::uint64_t mix(std::uint64_t z) {  // splitmix64's finaliser
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

inline std::uint64_t key_of(std::string_view name) {  // FNV-1a
  std::uint64_t key = 0xCBF29CE484222325;
  for (const char letter : name) key = (key ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return key;
}

// Bell-shaped: the sum of the four 16-bit parts of a hash.
inline Tensor hashed(std::string_view name, const Shape& shape, double mean = 0, double deviation = 1) {
  const double scale = deviation / 37837.0;
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::uint64_t state = key_of(name);
  for (float& value : values) {
    const std::uint64_t bits = mix(state += hash_step);
    const std::uint64_t sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
    // A product and a sum, each rounded: a fused one would differ from PyTorch's side in the last bit.
    volatile const double moved = (static_cast<double>(sum) - 131070.0) * scale;
    value = static_cast<float>(mean + moved);
  }
  return Tensor::from(values, shape);
}

// What a tensor of a state dict is filled with, by its name and shape.
inline Tensor hashed_value(const std::string& salt, const NamedTensor& of) {
  const Shape& shape = of.tensor.shape();
  const std::string seed = salt + of.name;
  if (of.name.ends_with("num_batches_tracked")) return of.tensor.clone();
  if (of.name.ends_with("running_var")) return hashed(seed, shape, 1, 0.1);
  if (shape.rank() == 4 && of.name.find(".block.") != of.name.npos)
    return hashed(seed, shape, 0, std::sqrt(2.0 / static_cast<double>(shape[1] * shape[2] * shape[3])));
  if (shape.rank() == 4)
    return hashed(seed, shape, 0, std::sqrt(2.0 / static_cast<double>(shape[0] * shape[2] * shape[3])));
  if (shape.rank() == 2) return hashed(seed, shape, 0, 0.05);
  return hashed(seed, shape, of.name.ends_with("weight") ? 1 : 0, 0.1);
}

inline NamedTensors hashed_state(const Module& module, const std::string& salt) {
  NamedTensors state = module.state_dict();
  for (NamedTensor& each : state) each.tensor = hashed_value(salt, each);
  return state;
}

// Which 64 elements of a tensor are looked at.
inline std::vector<std::size_t> sample_places(std::size_t count) {
  std::vector<std::size_t> places;
  for (std::uint64_t i = 1; i <= 64; ++i) places.push_back(mix(i * hash_step) % count);
  return places;
}

inline Tensor step_labels(std::int64_t count, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(i * 7 % classes);
  return Tensor::from(labels, {count});
}

}  // namespace tandem::golden
