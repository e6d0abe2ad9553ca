// Shared by the tests of data sets and data loaders: a data set such as a user would write.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/core/philox.h"
#include "tandem/data/dataset.h"

namespace tandem {

// Gray noise of 10×8 pixels. The argument of its factory is the number of samples.
class NoiseDataset : public Dataset {
 public:
  explicit NoiseDataset(std::int64_t count, bool in_processes = true)
      : count_(count), in_processes_(in_processes) {}

  std::int64_t size() const override { return count_; }
  std::int32_t label(std::int64_t index) const override { return static_cast<std::int32_t>(index % 3); }
  std::vector<std::string> classes() const override { return {"a", "b", "c"}; }
  Image image(std::int64_t index) const override {
    Image image = make_image(10, 8, 1);
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
      image.pixels[i] =
          static_cast<std::uint8_t>(random_block(9, static_cast<std::uint32_t>(index), i).word[0]);
    return image;
  }
  std::optional<DatasetFactoryCall> factory_call() const override {
    if (!in_processes_) return {};
    return DatasetFactoryCall{.name = "noise", .argument = std::to_string(count_)};
  }

  // The same images in memory.
  ImageSet in_memory() const {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < count_; ++i) {
      const Image one = image(i);
      pixels.insert(pixels.end(), one.pixels.begin(), one.pixels.end());
      labels.push_back(label(i));
    }
    return {.images = Tensor::from(pixels, {count_, 10, 8, 1}),
            .labels = Tensor::from(labels, {count_}),
            .classes = classes()};
  }

 private:
  std::int64_t count_;
  bool in_processes_;
};

// Like NoiseDataset, but something is wrong with sample 5, as the argument of its factory says.
class FaultyDataset : public NoiseDataset {
 public:
  explicit FaultyDataset(std::string fault) : NoiseDataset(20), fault_(std::move(fault)) {}

  std::int32_t label(std::int64_t index) const override {
    return index == 5 && fault_ == "label" ? 3 : NoiseDataset::label(index);
  }
  Image image(std::int64_t index) const override {
    if (index != 5) return NoiseDataset::image(index);
    if (fault_ == "throws") throw std::runtime_error("the camera is off");
    if (fault_ == "throws an int") throw 17;
    if (fault_ == "size") return make_image(10, 9, 1);
    if (fault_ == "channels") return make_image(10, 8, 3);
    if (fault_ == "empty") return {};
    Image image = NoiseDataset::image(index);
    if (fault_ == "pixels") image.pixels.pop_back();
    return image;
  }
  std::string describe(std::int64_t index) const override { return "shot " + std::to_string(index); }
  std::optional<DatasetFactoryCall> factory_call() const override {
    return DatasetFactoryCall{.name = "faulty", .argument = fault_};
  }

 private:
  std::string fault_;
};

}  // namespace tandem
