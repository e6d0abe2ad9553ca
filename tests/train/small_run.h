// A data set small enough to train in milliseconds, and comparison of the resulting weights.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tandem/data/synthetic/digits.h"
#include "tandem/files/checkpoint.h"
#include "tandem/files/idx.h"
#include "tandem/ops/cast.h"
#include "tandem/train/run_folder.h"
#include "tests/files/test_files.h"

namespace tandem {

inline void write_split(const std::filesystem::path& folder, const ImageSet& train, const ImageSet& test) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& part, const ImageSet& set) {
    const Tensor& images = set.images;
    write_idx(folder / (part + "-images-idx3-ubyte"),
              images.reshape({images.size(0), images.size(1), images.size(2)}));
    write_idx(folder / (part + "-labels-idx1-ubyte"), cast(set.labels, DType::u8));
  };
  write("train", train);
  write("t10k", test);
}

// 300 training and 100 test images.
inline void write_small_digits(const std::filesystem::path& folder) {
  const ImageSet digits = make_digits(400, 7);
  write_split(folder, digits.slice(0, 300), digits.slice(300, 400));
}

// The f32 tensors of a checkpoint, by name: all but those that hold times.
inline std::vector<std::pair<std::string, std::vector<float>>> weights_of(const TensorFile& file) {
  std::vector<std::pair<std::string, std::vector<float>>> all;
  for (const auto& [name, tensor] : file.tensors)
    if (tensor.dtype() == DType::f32) all.emplace_back(name, tensor.to_vector<float>());
  EXPECT_FALSE(all.empty());
  return all;
}

// Equal bits in best.safetensors and last.ckpt.
inline void expect_same_weights(const std::filesystem::path& a, const std::filesystem::path& b) {
  const RunFolder first{a}, second{b};
  EXPECT_EQ(weights_of(read_checkpoint(first.checkpoint())), weights_of(read_checkpoint(second.checkpoint())))
      << a << " and " << b;
  EXPECT_EQ(weights_of(read_safetensors(first.best())), weights_of(read_safetensors(second.best())))
      << a << " and " << b;
}

}  // namespace tandem
