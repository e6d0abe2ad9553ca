// The table of pretrained weights. Data sets have theirs in their rows (data/dataset_registry.h).
#include <fmt/format.h>

#include "tandem/files/fetch.h"

namespace tandem {
namespace {

// Weights of torchvision. The digits in the file name are the first of its SHA-256.
FetchSource weights(const std::string& name, std::uint64_t size, const std::string& sha256) {
  return {.name = name,
          .folder = "weights",
          .files = {{.name = fmt::format("{}-{}.pth", name, sha256.substr(0, 8)),
                     .size = size,
                     .sha256 = sha256}},
          .address = "https://download.pytorch.org/models/",
          .address_suffix = "",
          .otherwise = "go without pretrained weights"};
}

}  // namespace

const Registry<FetchSource>& weights_sources() {
  static const Registry<FetchSource> sources(
      "weights",
      {weights("resnet18", 46830571, "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"),
       weights("resnet34", 87319819, "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f"),
       weights("resnet50", 102540417, "11ad3fa62ca79e40addfd354a8ec4b7c75143b3038b8d2a807fbc68deab379ca")});
  return sources;
}

}  // namespace tandem
