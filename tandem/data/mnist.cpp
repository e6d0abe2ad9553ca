#include "tandem/data/mnist.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/files/idx.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> class_names(const std::string& name) {
  if (name == "mnist") return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  check(name == "fashion-mnist", "[mnist] expected mnist or fashion-mnist, got '{}'", name);
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

// FILE, or FILE.gz where only that exists.
fs::path raw_or_packed(const fs::path& folder, const std::string& file) {
  std::error_code ignored;
  const fs::path packed = folder / (file + ".gz");
  return !fs::exists(folder / file, ignored) && fs::exists(packed, ignored) ? packed : folder / file;
}

ImageSet load_part(const fs::path& folder, const std::string& part, const std::vector<std::string>& classes) {
  const fs::path images_path = raw_or_packed(folder, part + "-images-idx3-ubyte");
  const fs::path labels_path = raw_or_packed(folder, part + "-labels-idx1-ubyte");
  const Tensor images = read_idx(images_path);
  check(images.dtype() == DType::u8 && images.rank() == 3 && images.numel() > 0,
        "[mnist] {}: expected u8 images of shape [count, height, width], got {} of {}", images_path.string(),
        images.shape().to_string(), name_of(images.dtype()));
  const Tensor labels = read_idx(labels_path);
  check(labels.dtype() == DType::u8 && labels.rank() == 1,
        "[mnist] {}: expected u8 labels of shape [count], got {} of {}", labels_path.string(),
        labels.shape().to_string(), name_of(labels.dtype()));
  check(images.size(0) == labels.size(0), "[mnist] {}: expected a label for each of the {} images, got {}",
        labels_path.string(), images.size(0), labels.size(0));

  const std::vector<std::uint8_t> bytes = labels.to_vector<std::uint8_t>();
  const auto wrong = std::ranges::find_if(bytes, [&](std::uint8_t label) { return label >= classes.size(); });
  check(wrong == bytes.end(), "[mnist] {}: expected labels from 0 to {}, got {} for image {}",
        labels_path.string(), classes.size() - 1, wrong == bytes.end() ? 0 : int{*wrong},
        wrong - bytes.begin());
  const std::vector<std::int32_t> wide(bytes.begin(), bytes.end());
  return {.images = images.reshape({images.size(0), images.size(1), images.size(2), 1}),
          .labels = Tensor::from(wide, {labels.size(0)}),
          .classes = classes};
}

}  // namespace

DataSplit load_mnist(const std::string& name, const fs::path& folder) {
  const std::vector<std::string> classes = class_names(name);
  DataSplit split{
      .name = name, .train = load_part(folder, "train", classes), .test = load_part(folder, "t10k", classes)};
  const Tensor &train = split.train.images, &test = split.test.images;
  check(train.size(1) == test.size(1) && train.size(2) == test.size(2),
        "[mnist] {}: expected train and test images of one size, got {}x{} and {}x{}", folder.string(),
        train.size(1), train.size(2), test.size(1), test.size(2));
  return split;
}

}  // namespace tandem
