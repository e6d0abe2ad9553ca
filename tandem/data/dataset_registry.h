// The data sets that can be named, as in `tandem train mnist` and `tandem fetch mnist`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "tandem/core/registry.h"
#include "tandem/data/image_set.h"
#include "tandem/data/photo_split.h"
#include "tandem/files/fetch.h"

namespace tandem {

/// One data set.
struct DatasetRow {
  std::string name;
  std::string summary;
  std::optional<FetchSource> source = {};  ///< where its files come from; none: it is rendered
  /// Loads it from the folder with its files. A rendered one has no folder; it renders `train` training
  /// images. Null for photographs, whose size depends on the transform.
  std::function<DataSplit(const std::filesystem::path& folder, std::int64_t train)> load = {};
  std::string default_model = "mlp";  ///< the train command's, a name of models()
  /// For rendered photographs: the data sets, with `train` training images of the seed.
  std::function<PhotoSplit(std::uint64_t seed, std::int64_t train)> load_photos = {};
  std::int64_t default_photos = 0;  ///< the number of training images, unless it is given

  bool is_photographs() const { return !load; }
};

/// digits, mnist, fashion-mnist, plates and the registered ones.
const Registry<DatasetRow>& datasets();

/// What can be downloaded: data sets with a source, and pretrained weights.
std::vector<std::string> fetchable();
/// Adds a data set; throws Error for a name that is taken. Not thread-safe.
void register_dataset(DatasetRow row);

/// Loads a data set of one image size, fetching its files if the cache does not have them. `train` is the
/// number of training images of a rendered one. Throws Error for an unknown name and for photographs.
DataSplit load_dataset(const std::string& name, const FetchOptions& options = {}, std::int64_t train = 60000);

/// Where the files of a data set or the pretrained weights of a model come from. Throws Error for a name that
/// has no files.
const FetchSource& fetch_source(const std::string& name);
/// The names that fetch_source() accepts: "mnist, fashion-mnist, resnet18".
std::string fetchable_names();
/// fetch_dataset() of fetch_source(name): the folder with the files.
std::filesystem::path fetch_dataset(const std::string& name, const FetchOptions& options = {});

}  // namespace tandem
