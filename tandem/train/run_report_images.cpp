#include "tandem/train/run_report_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/resize_area.h"
#include "tandem/image/save_image.h"
#include "tandem/report/confusion.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/explain/class_activation.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

constexpr std::size_t max_mistakes = 32, max_photos = 12;
constexpr std::size_t max_cell_images = 400;  // in all; bounds the time of encoding them
constexpr std::int64_t photo_side = 112, max_png_side = 32;
constexpr int jpeg_quality = 85;

// Image `index` of a set on the host as it is shown; gray where it is not RGB.
Image shown_image(const Tensor& images, std::int64_t index) {
  const int channels = images.size(3) == 3 ? 3 : 1;
  const Tensor one = images.slice(0, index, index + 1).slice(3, 0, channels);
  Image image = make_image(images.size(1), images.size(2), channels);
  image.pixels = one.to_vector<std::uint8_t>();
  if (std::max(image.height, image.width) > photo_side) image = resize_area(image, photo_side, photo_side);
  return image;
}

// A large image becomes a JPEG, which is a quarter of a PNG.
std::string file_of(const Image& image) {
  const bool small = std::max(image.height, image.width) <= max_png_side;
  const std::vector<std::uint8_t> bytes = small ? encode_png(image) : encode_jpeg(image, jpeg_quality);
  return {bytes.begin(), bytes.end()};
}

// File name with its parent folder, which is the class.
std::string short_name(const std::string& path) {
  const std::filesystem::path full = path;
  return (full.parent_path().filename() / full.filename()).string();
}

// The test images with their labels and predictions.
struct TestedImages {
  const TrainingData& data;
  const std::vector<std::int32_t>& predictions;
  std::vector<std::int32_t> labels;
  std::vector<float> probabilities;  // images × classes
  std::size_t classes = 0;

  std::size_t truth(std::size_t image) const { return static_cast<std::size_t>(labels[image]); }
  std::size_t predicted(std::size_t image) const { return static_cast<std::size_t>(predictions[image]); }
  std::size_t cell(std::size_t image) const { return truth(image) * classes + predicted(image); }
  float confidence(std::size_t image) const { return probabilities[image * classes + predicted(image)]; }
};

// In parallel, because encoding a photograph takes a millisecond.
std::vector<ClassifiedImage> classified_images(const TestedImages& tested,
                                               const std::vector<std::size_t>& chosen) {
  const TrainingData& data = tested.data;
  std::vector<ClassifiedImage> images(chosen.size());
  parallel_tasks(std::ssize(chosen), 1, [&] {
    return [&](std::int64_t task, std::int64_t) {
      const std::size_t i = chosen[static_cast<std::size_t>(task)];
      images[static_cast<std::size_t>(task)] = {
          .file = file_of(shown_image(data.test.images, static_cast<std::int64_t>(i))),
          .map = {},
          .truth = data.test.classes[tested.truth(i)],
          .predicted = data.test.classes[tested.predicted(i)],
          .probability = tested.confidence(i),
          .name = data.test_names.empty() ? fmt::format("image {}", i) : short_name(data.test_names[i])};
    };
  });
  return images;
}

// Draws the class activation map of the predicted class over each image.
void add_maps(std::vector<ClassifiedImage>& images, const TestedImages& tested,
              const std::vector<std::size_t>& chosen, const TestedModel& model) {
  if (!model.module || model.input.flat) return;
  const Device device = device_of(*model.module);
  for (std::size_t k = 0; k < chosen.size(); ++k) {  // one by one: recorded activations take much memory
    const auto index = static_cast<std::int64_t>(chosen[k]);
    const std::int64_t predicted = tested.predictions[chosen[k]];
    const Tensor pixels = tested.data.test.images.slice(0, index, index + 1).to(device);
    const Tensor map =
        class_activation_maps(*model.module, network_input(pixels, model.input), {&predicted, 1});
    if (!map.defined()) return;
    Image picture = shown_image(tested.data.test.images, index);
    const std::int64_t side = std::max(picture.height, picture.width);
    const std::int64_t factor = (photo_side + side - 1) / side;  // a map over a small image needs more pixels
    picture = resize_area(picture, factor * picture.height, factor * picture.width);
    images[k].map = file_of(render_heat(picture, scaled_heat(map, picture.height, picture.width)));
  }
}

// The first images of `by_confidence` whose predictions are correct, or wrong.
std::vector<std::size_t> first_of(const TestedImages& tested, const std::vector<std::size_t>& by_confidence,
                                  bool correct, std::size_t max_count) {
  std::vector<std::size_t> chosen;
  for (const std::size_t i : by_confidence)
    if (chosen.size() < max_count && (tested.truth(i) == tested.predicted(i)) == correct) chosen.push_back(i);
  return chosen;
}

// The cells whose images a page shows, the most important first: confusions by their frequency, then the
// diagonal of a matrix.
std::vector<CellImages> shown_cells(const Confusion& confusion) {
  const bool matrix = confusion.classes.size() <= max_matrix_classes;
  std::vector<CellImages> cells;
  for (const ConfusedPair& pair : confusion.pairs)
    if (matrix || cells.size() < max_listed_confusions)
      cells.push_back({.truth = pair.truth, .predicted = pair.predicted, .images = {}});
  for (std::size_t i = 0; matrix && i < confusion.classes.size(); ++i)
    if (confusion.classes[i].correct > 0) cells.push_back({.truth = i, .predicted = i, .images = {}});
  return cells;
}

// Round by round one more image of each cell, until a limit is reached: every cell gets one before any gets
// two.
std::vector<CellImages> cell_images(const TestedImages& tested, const Confusion& confusion,
                                    const std::vector<std::size_t>& by_confidence) {
  std::vector<CellImages> cells = shown_cells(confusion);
  std::unordered_map<std::size_t, std::size_t> index_of;  // in `cells`
  for (std::size_t c = 0; c < cells.size(); ++c)
    index_of[cells[c].truth * tested.classes + cells[c].predicted] = c;
  std::vector<std::vector<std::size_t>> images_of(cells.size());
  for (const std::size_t i : by_confidence)
    if (const auto found = index_of.find(tested.cell(i)); found != index_of.end())
      if (images_of[found->second].size() < max_images_per_cell) images_of[found->second].push_back(i);
  std::vector<std::size_t> chosen, owners;  // images, and the index of the cell of each
  for (std::size_t round = 0; round < max_images_per_cell; ++round)
    for (std::size_t c = 0; c < cells.size() && chosen.size() < max_cell_images; ++c) {
      if (round >= images_of[c].size()) continue;
      chosen.push_back(images_of[c][round]);
      owners.push_back(c);
    }
  std::vector<ClassifiedImage> images = classified_images(tested, chosen);
  std::size_t bytes = 0;
  for (std::size_t k = 0; k < images.size(); ++k) {
    bytes += images[k].file.size();
    if (bytes > max_cell_bytes) break;
    cells[owners[k]].images.push_back(std::move(images[k]));
  }
  return cells;
}

}  // namespace

void add_test_images(TrainingReport& report, const TrainingData& data, const Evaluation& tested,
                     LossKind loss, const TestedModel& model) {
  const TestedImages images{.data = data,
                            .predictions = tested.predictions,
                            .labels = data.test.labels.to_vector<std::int32_t>(),
                            .probabilities = probabilities(tested.outputs, tested.classes, loss),
                            .classes = static_cast<std::size_t>(tested.classes)};
  report.confusion = confusion_matrix(images.labels, tested.predictions, tested.classes);
  std::vector<std::size_t> by_confidence(images.labels.size());
  for (std::size_t i = 0; i < by_confidence.size(); ++i) by_confidence[i] = i;
  std::ranges::stable_sort(by_confidence, std::greater<>(),
                           [&](std::size_t i) { return images.confidence(i); });
  const bool photos = data.train.photographs;
  const std::vector<std::size_t> wrong =
      first_of(images, by_confidence, false, photos ? max_photos : max_mistakes);
  report.mistakes = classified_images(images, wrong);
  add_maps(report.mistakes, images, wrong, model);
  if (photos)
    report.most_confident = classified_images(images, first_of(images, by_confidence, true, max_photos));
  report.cells = cell_images(images, read_confusion(report.confusion), by_confidence);
}

void add_curves(TrainingReport& report, const TrainingData& data, const Evaluation& tested, LossKind loss,
                const Decision& decision) {
  if (tested.classes != 2) return;
  report.curves = evaluated_curves(tested, data.test.labels.to_vector<std::int32_t>(), loss);
  report.curves->negative = data.test.classes[0];
  report.curves->positive = data.test.classes[1];
  if (decision.threshold) report.curves->threshold = *decision.threshold;
}

}  // namespace tandem
