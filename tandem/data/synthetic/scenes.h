// Rendered scenes: pictures of patterns, shapes, objects, landscapes, rooms and more, made by code without
// any photograph. A picture is a function of (seed, number of the scene, view), with the same pixels on every
// device. Made for pretraining, and useful wherever many different pictures are needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/photo_split.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// The names of the kinds of scenes.
const std::vector<std::string>& scene_kinds();

/// The shares of SceneOptions::kinds for scenes of these kinds only. Throws Error for an unknown name.
std::vector<double> scene_shares(const std::vector<std::string>& kinds);

/// Options of SceneRenderer.
struct SceneOptions {
  std::uint64_t seed = 0;
  std::int64_t size = 112;  ///< side of the pictures, in pixels
  /// Random views of each scene: a part of it, turned, with other colors, blur and noise. 0: one picture of
  /// the whole scene as it is.
  int views = 0;
  double min_area = 0.2;  ///< of the scene that a view shows
  double jitter = 1;      ///< how much the colors of views change; 0: not at all
  /// How often each kind of scene_kinds() comes, relative to the others. Empty: as suits pretraining.
  std::vector<double> kinds = {};
};

/// Renders scenes on one device.
class SceneRenderer {
 public:
  /// Memory for `scenes` scenes at a time. Throws Error for options out of range.
  SceneRenderer(std::int64_t scenes, const SceneOptions& options, Device device = cpu_device);

  /// The pictures: u8 (pictures(), size, size, 3). View v of the i-th scene is picture v · scenes + i.
  const Tensor& images() const { return images_; }
  /// What is known of each scene: i32 (scenes, attributes), in column c below attribute_sizes()[c]; the first
  /// column is the kind.
  const Tensor& attributes() const { return attributes_; }
  static std::vector<std::int64_t> attribute_sizes();
  std::int64_t pictures() const { return images_.size(0); }

  /// Renders the scenes from number `first` on into images() and attributes().
  void render(std::int64_t first);
  /// The same with the number in an i64 tensor of one element on the device, for graphs that are captured.
  void render(const Tensor& first);

 private:
  SceneOptions options_;
  std::int64_t scenes_;
  Device device_;
  Tensor images_, attributes_, first_;
  Tensor scene_memory_, view_memory_;
};

/// Whole scenes as a data set with their kinds as classes. Rendered when they are read.
class SceneDataset : public Dataset {
 public:
  /// Scenes first … first + count − 1 of a seed.
  SceneDataset(std::uint64_t seed, std::int64_t first, std::int64_t count, std::int64_t size = 112);

  std::int64_t size() const override { return count_; }
  Image image(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override;
  std::vector<std::string> classes() const override { return scene_kinds(); }
  std::string describe(std::int64_t index) const override;

 private:
  std::uint64_t seed_;
  std::int64_t first_, count_, side_;
};

/// `train` scenes to train on, and 100 and 300 others of the same seed.
PhotoSplit scenes_split(std::uint64_t seed, std::int64_t train);

}  // namespace tandem
