// Data sets: labeled 8-bit images that a DataLoader or fit() reads. Derive from Dataset for data of your own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/data/photo_options.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/image/image.h"

namespace tandem {

class PhotoStore;
namespace detail {
class SampleStore;
}

/// How a worker process makes a data set again: the name of a registered factory, and its argument.
struct DatasetFactoryCall {
  std::string name;
  std::string argument;
};

/// A fixed number of labeled images that can be read in any order. All functions must be thread-safe: several
/// workers call them at once. A data set that is not held by a std::shared_ptr must outlive the loaders that
/// read it.
class Dataset : public std::enable_shared_from_this<Dataset> {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  /// The 8-bit image of a sample, gray or RGB. An exception ends loading: the trainer gets an Error with
  /// describe() of the sample and the exception's text. Sizes may differ if the transform resizes.
  virtual Image image(std::int64_t index) const = 0;
  /// The index of the sample's class in classes().
  virtual std::int32_t label(std::int64_t index) const = 0;
  virtual std::vector<std::string> classes() const = 0;

  /// Names a sample in messages: its path, or "sample 17".
  virtual std::string describe(std::int64_t index) const;
  /// How a worker process makes this data set again. Without it, only thread workers can read it.
  virtual std::optional<DatasetFactoryCall> factory_call() const { return {}; }

  /// The representation that loaders use. The default calls the functions above; not for users.
  virtual std::shared_ptr<const detail::SampleStore> sample_store() const;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
};

/// Makes a data set from the argument of its DatasetFactoryCall.
using DatasetFactory = std::function<std::unique_ptr<Dataset>(const std::string& argument)>;

/// Lets worker processes make data sets of this name. Call it in main() before run_worker_if_asked(). Throws
/// Error for a name that is already registered. Not thread-safe.
void register_dataset_factory(std::string name, DatasetFactory factory);

/// The data set of a factory call. Throws Error for a name that is not registered.
std::unique_ptr<Dataset> make_dataset(const DatasetFactoryCall& call);

/// Images of one size, in memory. Copies share memory.
class ImageDataset final : public Dataset {
 public:
  /// Throws Error as check_image_set() does, and for images that are not on the CPU.
  explicit ImageDataset(ImageSet images);

  std::int64_t size() const override { return images_.count(); }
  /// Throws Error for an index out of range, and for images that are neither gray nor RGB.
  Image image(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override;
  std::vector<std::string> classes() const override { return images_.classes; }
  std::shared_ptr<const detail::SampleStore> sample_store() const override;

  const ImageSet& images() const { return images_; }
  /// Images begin … end − 1, sharing memory. Throws Error for a range outside the set.
  ImageDataset slice(std::int64_t begin, std::int64_t end) const {
    return ImageDataset(images_.slice(begin, end));
  }

 private:
  ImageSet images_;
};

/// Photographs of any size: decoded in memory if they fit, otherwise read from their files each time. Copies
/// share memory. image_folder() makes one from a folder.
class PhotoDataset final : public Dataset {
 public:
  /// One label per file. Throws Error when there are no files or none can be read, for labels without a
  /// class, and, with OnBadImage::fail, when one file cannot be read.
  PhotoDataset(const std::vector<std::filesystem::path>& files, const std::vector<std::int32_t>& labels,
               std::vector<std::string> classes, const PhotoStoreOptions& options = {});
  /// Photographs in memory. Throws Error for labels without a class.
  PhotoDataset(std::shared_ptr<const PhotoStore> photos, std::vector<std::string> classes);

  std::int64_t size() const override;
  /// RGB. Throws Error for an index out of range and for a photograph that cannot be read.
  Image image(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override;
  std::vector<std::string> classes() const override { return classes_; }
  std::string describe(std::int64_t index) const override;  ///< its path
  std::shared_ptr<const detail::SampleStore> sample_store() const override;

  /// The memory of the photographs.
  const std::shared_ptr<const PhotoStore>& photos() const { return photos_; }

 private:
  std::shared_ptr<const PhotoStore> photos_;
  std::vector<std::string> classes_;
};

}  // namespace tandem
