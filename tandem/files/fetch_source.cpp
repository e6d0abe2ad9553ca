// The table of pretrained weights. Data sets have theirs in their rows (data/dataset_registry.h).
#include <fmt/format.h>

#include "tandem/files/fetch.h"

namespace tandem {
namespace {

// Weights of torchvision. The digits in the file name are the first of its SHA-256.
FetchSource weights(const std::string& name, const std::string& digits) {
  return {.name = name,
          .folder = "weights",
          .files = {{.name = fmt::format("{}-{}.pth", name, digits), .sha256 = digits}},
          .address = "https://download.pytorch.org/models/",
          .address_suffix = "",
          .otherwise = "go without pretrained weights"};
}

}  // namespace

const Registry<FetchSource>& weights_sources() {
  static const Registry<FetchSource> sources(
      "weights",
      {weights("resnet18", "f37072fd"), weights("resnet34", "b627a593"), weights("resnet50", "11ad3fa6")});
  return sources;
}

}  // namespace tandem
