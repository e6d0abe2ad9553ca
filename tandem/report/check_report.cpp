// The counts, the list of fixes and the JSON of a check.
#include "tandem/report/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tandem/report/csv.h"
#include "tandem/report/facts_json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

bool differ(const std::vector<CheckedImage>& images, std::string CheckedImage::*member) {
  return std::ranges::any_of(images,
                             [&](const CheckedImage& image) { return image.*member != images[0].*member; });
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class FixList {
 public:
  // A file is listed once.
  void add(const std::string& path, const std::string& to, const char* problem, const std::string& because) {
    if (paths_.insert(path).second)
      text_ += fmt::format("{},{},{},{}\n", csv_field(path), csv_field(to), problem, csv_field(because));
  }
  void put_aside(const std::string& path, const char* problem, const std::string& because) {
    add(path, fmt::format(".aside/{}", path), problem, because);
  }

  std::string take() { return std::move(text_); }

 private:
  std::set<std::string> paths_;
  std::string text_ = "path,to,problem,because\n";
};

// One file is kept: of the part that evaluates last, because what is trained on must not be tested on; of
// those the largest.
std::size_t kept_file(const CheckReport& report, const CopiedPicture& picture) {
  const auto rank = [&](const CheckedImage& image) {
    const auto part = std::ranges::find(report.parts, image.part) - report.parts.begin();
    return std::pair(part, image.height * image.width);
  };
  std::size_t kept = 0;
  for (std::size_t i = 1; i < picture.images.size(); ++i)
    if (rank(picture.images[i]) > rank(picture.images[kept])) kept = i;
  return kept;
}

void add_copies(const CheckReport& report, const CopiedPicture& picture, const char* problem, FixList& list) {
  const std::size_t kept = kept_file(report, picture);
  for (std::size_t i = 0; i < picture.images.size(); ++i) {
    const std::string& path = picture.images[i].path;
    const std::string& other = picture.images[i == kept ? (kept == 0 ? 1 : 0) : kept].path;
    if (picture.in_several_classes())
      list.add(path, "", "in several classes", other);
    else if (i != kept)
      list.put_aside(path, problem, other);
  }
}

// The path in the folder of another class: only the folder of its class is replaced.
std::string relabeled(const CheckedImage& image, const std::string& label) {
  const std::string part = image.part.empty() ? "" : image.part + "/";
  const std::string own = part + image.label + "/";
  return part + label + "/" +
         (image.path.starts_with(own) ? image.path.substr(own.size()) : file_name(image.path));
}

Json image_json(const CheckedImage& image) {
  Json json{{"path", image.path}};
  if (!image.part.empty()) json["part"] = image.part;
  if (!image.label.empty()) json["class"] = image.label;
  json["width"] = image.width;
  json["height"] = image.height;
  return json;
}

Json odd_json(const std::vector<OddImage>& images) {
  Json list = Json::array();
  for (const OddImage& odd : images) {
    Json json = image_json(odd.image);
    json["reason"] = odd.reason;
    list.push_back(std::move(json));
  }
  return list;
}

Json copies_json(const std::vector<CopiedPicture>& copies) {
  Json list = Json::array();
  for (const CopiedPicture& picture : copies) {
    Json files = Json::array();
    for (std::size_t i = 0; i < picture.images.size(); ++i) {
      Json file = image_json(picture.images[i]);
      if (picture.originals[i] != i) file["same_bytes_as"] = picture.images[picture.originals[i]].path;
      files.push_back(std::move(file));
    }
    list.push_back(Json{{"identical", picture.is_identical()},
                        {"in_several_parts", picture.in_several_parts()},
                        {"in_several_classes", picture.in_several_classes()},
                        {"files", std::move(files)}});
  }
  return list;
}

Json sizes_json(const CheckedSizes& sizes) {
  Json frequent = Json::array();
  for (const SizeCount& size : sizes.frequent)
    frequent.push_back(Json{{"width", size.width}, {"height", size.height}, {"images", size.images}});
  return Json{
      {"shorter_side", {{"min", sizes.min_side}, {"median", sizes.median_side}, {"max", sizes.max_side}}},
      {"aspect_ratio",
       {{"min", sizes.min_aspect}, {"median", sizes.median_aspect}, {"max", sizes.max_aspect}}},
      {"frequent", std::move(frequent)},
      {"odd", odd_json(sizes.odd)}};
}

Json features_json(const CheckedFeatures& features) {
  Json mislabels = Json::array(), outliers = Json::array();
  for (const LikelyMislabel& mislabel : features.mislabels) {
    Json json = image_json(mislabel.image);
    json["suggested"] = mislabel.suggested;
    json["label_probability"] = mislabel.label_probability;
    json["suggested_probability"] = mislabel.suggested_probability;
    mislabels.push_back(std::move(json));
  }
  for (const Outlier& outlier : features.outliers) {
    Json json = image_json(outlier.image);
    json["distance"] = outlier.distance;
    outliers.push_back(std::move(json));
  }
  Json json{{"model", features.model}, {"weights", features.weights}, {"images", features.images}};
  if (!features.note.empty()) json["note"] = features.note;
  if (std::isfinite(features.accuracy)) json["folds"] = features.folds, json["accuracy"] = features.accuracy;
  json["mislabels"] = std::move(mislabels);
  json["outliers"] = std::move(outliers);
  return json;
}

}  // namespace

bool CopiedPicture::is_identical() const {
  return std::ranges::all_of(originals, [](std::size_t original) { return original == 0; });
}

bool CopiedPicture::in_several_parts() const {
  return differ(images, &CheckedImage::part);
}

bool CopiedPicture::in_several_classes() const {
  return differ(images, &CheckedImage::label);
}

SortedCopies sorted_copies(const CheckReport& report) {
  SortedCopies sorted;
  for (const CopiedPicture& picture : report.copies)
    (picture.in_several_parts()     ? sorted.leaks
     : picture.in_several_classes() ? sorted.conflicts
                                    : sorted.others)
        .push_back(&picture);
  return sorted;
}

CopyCounts count_copies(const CheckReport& report) {
  CopyCounts counts;
  for (const CopiedPicture& picture : report.copies)
    for (std::size_t i = 1; i < picture.images.size(); ++i)
      ++(picture.originals[i] == i ? counts.near : counts.identical);
  return counts;
}

std::string check_fixes_csv(const CheckReport& report) {
  FixList list;
  for (const NotReadFile& file : report.not_read)
    if (file.kind == SkipKind::damaged || file.kind == SkipKind::no_decoder ||
        file.kind == SkipKind::too_large)
      list.put_aside(file.path, "not read", file.reason);
  const SortedCopies sorted = sorted_copies(report);
  for (const CopiedPicture* picture : sorted.leaks) add_copies(report, *picture, "in several parts", list);
  for (const CopiedPicture* picture : sorted.conflicts)
    add_copies(report, *picture, "in several classes", list);
  for (const CopiedPicture* picture : sorted.others) add_copies(report, *picture, "copy", list);
  if (report.features)
    for (const LikelyMislabel& mislabel : report.features->mislabels)
      list.add(mislabel.image.path, relabeled(mislabel.image, mislabel.suggested), "likely mislabel",
               fmt::format("{} {:.3f}, {} {:.3f}", mislabel.image.label, mislabel.label_probability,
                           mislabel.suggested, mislabel.suggested_probability));
  return list.take();
}

std::string check_json(const CheckReport& report) {
  Json classes = Json::array(), not_read = Json::array();
  for (const CheckedClass& one : report.classes) {
    Json counts = Json::object();
    for (std::size_t i = 0; i < one.images.size(); ++i)
      counts[report.parts[i].empty() ? "all" : report.parts[i]] = one.images[i];
    classes.push_back(Json{{"class", one.name}, {"images", std::move(counts)}});
  }
  for (const NotReadFile& file : report.not_read)
    not_read.push_back(Json{{"path", file.path}, {"kind", name_of(file.kind)}, {"reason", file.reason}});
  const CopyCounts counts = count_copies(report);
  Json json{{"data", report.data},
            {"images", report.images},
            {"seconds", report.seconds},
            {"classes", std::move(classes)},
            {"balance", report.balance},
            {"not_read", std::move(not_read)},
            {"identical_copies", counts.identical},
            {"near_copies", counts.near},
            {"partly_compared", report.partly_compared},
            {"copies", copies_json(report.copies)},
            {"sizes", sizes_json(report.sizes)},
            {"odd_colors", odd_json(report.colors)}};
  if (report.features) json["features"] = features_json(*report.features);
  if (!report.provenance.empty()) json["provenance"] = facts_json(report.provenance);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
