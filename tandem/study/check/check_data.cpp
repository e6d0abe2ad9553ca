#include "tandem/study/check/check_data.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/image/resize.h"
#include "tandem/image/save_image.h"
#include "tandem/study/check/check_features.h"
#include "tandem/study/check/copies.h"
#include "tandem/study/check/odd_images.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::vector<NotReadFile> not_read_files(std::span<const SkippedSample> skipped) {
  std::vector<NotReadFile> files;
  for (const SkippedSample& file : skipped) files.push_back({file.name, file.reason, file.kind});
  return files;
}

CopiedPicture copied_picture(const CopyGroup& group, const CheckedFiles& files,
                             std::span<const ImageFacts> images) {
  CopiedPicture picture;
  std::unordered_map<std::int64_t, std::size_t> positions;
  for (std::size_t i = 0; i < group.files.size(); ++i) {
    positions[group.files[i]] = i;
    picture.images.push_back(checked_image(files, images, group.files[i]));
    picture.originals.push_back(positions.at(group.originals[i]));
  }
  return picture;
}

// A small JPEG of a file; empty if it cannot be read any more.
std::string small_jpeg(const std::filesystem::path& path, std::int64_t max_pixels) try {
  constexpr std::int64_t side = 180;
  constexpr int quality = 80;
  const std::string file = read_file("check", path, max_image_file_bytes);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  const LoadOptions options{.max_pixels = max_pixels, .rgb = true};
  const ImageInfo info = read_image_info(bytes, path.string(), options);
  const double scale =
      std::min(1.0, static_cast<double>(side) / static_cast<double>(std::max(info.height, info.width)));
  const auto scaled = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(length) * scale + 0.5));
  };
  const std::int64_t height = scaled(info.height), width = scaled(info.width);
  const Image image =
      decode_scaled(bytes, path.string(), {0, 0, info.width, info.height}, height, width, options);
  const std::vector<std::uint8_t> jpeg = encode_jpeg(resize(image, height, width), quality);
  return {jpeg.begin(), jpeg.end()};
} catch (const Error&) {
  return {};
}

// The images that the page shows.
std::vector<CheckedImage*> shown_images(CheckReport& report) {
  using Limits = CheckPageLimits;
  std::vector<CheckedImage*> shown;
  const SortedCopies sorted = sorted_copies(report);
  for (const auto* list : {&sorted.leaks, &sorted.conflicts, &sorted.others})
    for (std::size_t i = 0; i < std::min(Limits::copies, list->size()); ++i) {
      CopiedPicture& picture = report.copies[static_cast<std::size_t>((*list)[i] - report.copies.data())];
      for (std::size_t k = 0; k < std::min(Limits::images_per_copy, picture.images.size()); ++k)
        shown.push_back(&picture.images[k]);
    }
  for (auto* list : {&report.sizes.odd, &report.colors})
    for (std::size_t i = 0; i < std::min(Limits::odd, list->size()); ++i) shown.push_back(&(*list)[i].image);
  if (!report.features) return shown;
  std::vector<LikelyMislabel>& mislabels = report.features->mislabels;
  std::vector<Outlier>& outliers = report.features->outliers;
  for (std::size_t i = 0; i < std::min(Limits::mislabels, mislabels.size()); ++i)
    shown.push_back(&mislabels[i].image);
  for (std::size_t i = 0; i < std::min(Limits::outliers, outliers.size()); ++i)
    shown.push_back(&outliers[i].image);
  return shown;
}

void add_pictures(const CheckDataOptions& options, CheckReport& report) {
  const std::vector<CheckedImage*> shown = shown_images(report);
  parallel_tasks(std::ssize(shown), 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      CheckedImage& image = *shown[static_cast<std::size_t>(i)];
      image.picture = small_jpeg(options.data / image.path, options.max_pixels);
    };
  });
}

}  // namespace

CheckReport check_data(const CheckDataOptions& options) {
  const Stopwatch watch;
  const auto progress = [&](const char* phase) -> CheckProgress {
    if (!options.on_progress) return {};
    return [&, phase](std::int64_t done, std::int64_t total) { options.on_progress(phase, done, total); };
  };
  const CheckedFiles files = find_checked_files(options.data);
  const Survey survey = survey_images(files, options.max_pixels, progress("Reading"));
  CheckReport report{.data = options.data.string(), .parts = files.parts};
  report.images = std::ranges::count_if(survey.images, &ImageFacts::was_read);
  std::vector<SkippedSample> skipped = survey.not_read;
  skipped.insert(skipped.end(), files.skipped.begin(), files.skipped.end());
  const std::string counts = count_skipped(skipped);
  check(report.images > 0, "[check] {}: expected images that can be read, got {}", one_line(report.data),
        skipped.empty() ? "none" : "none in " + counts);
  if (!skipped.empty()) report.not_read_counts = counts;
  report.not_read = not_read_files(skipped);

  const Copies copies = find_copies(files, survey.images, options.max_pixels, progress("Comparing"));
  for (const CopyGroup& group : copies.groups)
    report.copies.push_back(copied_picture(group, files, survey.images));
  report.partly_compared = copies.partly_compared;
  report.classes = count_classes(files, survey.images);
  report.balance = check_balance(report.classes, report.parts);
  report.sizes = check_sizes(files, survey.images);
  report.colors = check_colors(files, survey.images);
  report.seconds = watch.elapsed_ms() / 1000;
  if (!options.model.empty())
    report.features = check_features({.model = options.model,
                                      .image_size = options.image_size,
                                      .device = options.device,
                                      .max_pixels = options.max_pixels},
                                     files, survey.images, copies, progress("Features"));
  if (options.pictures) add_pictures(options, report);
  return report;
}

}  // namespace tandem
