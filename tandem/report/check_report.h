// What a check of a folder of images found, as text, HTML with pictures, JSON, and as a list of files to
// move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/image/decode_error.h"
#include "tandem/report/fact.h"
#include "tandem/text/table.h"

namespace tandem {

struct CheckedImage {
  std::string path;   // below the folder
  std::string part;   // "train"; empty: the data have no parts
  std::string label;  // the class; empty: none
  std::int64_t height = 0, width = 0;
  std::string picture = {};  // bytes of a small JPEG for the page; empty: not shown
};

// A picture that several files show.
struct CopiedPicture {
  std::vector<CheckedImage> images;    // two or more
  std::vector<std::size_t> originals;  // of each: index of the first one with the same bytes

  bool is_identical() const;  // all have the same bytes
  bool in_several_parts() const;
  bool in_several_classes() const;
};

struct NotReadFile {
  std::string path, reason;
  SkipKind kind = SkipKind::damaged;
};

struct CheckedClass {
  std::string name;
  std::vector<std::int64_t> images;  // in each part
};

// An image with a property that few others have.
struct OddImage {
  CheckedImage image;
  std::string reason;
};

struct SizeCount {
  std::int64_t height = 0, width = 0, images = 0;
};

struct CheckedSizes {
  std::int64_t min_side = 0, median_side = 0, max_side = 0;  // the shorter side
  double min_aspect = 0, median_aspect = 0, max_aspect = 0;  // width / height
  std::vector<SizeCount> frequent;                           // the most frequent sizes
  std::vector<std::int64_t> shorter_sides;  // images whose shorter side is from 2^i to 2^(i + 1) − 1
  std::vector<OddImage> odd;
};

struct LikelyMislabel {
  CheckedImage image;
  std::string suggested;         // class
  double label_probability = 0;  // of its label
  double suggested_probability = 0;
};

struct Outlier {
  CheckedImage image;
  double distance = 0;  // to its neighbors, in medians of all images
};

struct CheckedFeatures {
  std::string model;    // as given
  std::string weights;  // "resnet18, scenes"
  std::int64_t images = 0;
  int folds = 0;
  double accuracy = 0;    // of the labels, cross-validated; NaN without labels to compare with
  std::string note = {};  // why there are no mislabels
  std::vector<LikelyMislabel> mislabels;  // the most likely first
  std::vector<Outlier> outliers;          // the farthest first
};

struct CheckReport {
  std::string data;
  std::vector<std::string> parts;     // "train", "val", "test"; one without a name if there are none
  std::vector<CheckedClass> classes;  // sorted by name; empty: images without classes
  std::int64_t images = 0;            // that were read
  double seconds = 0;                 // to read and to compare them
  std::vector<NotReadFile> not_read;
  std::string not_read_counts;  // "3 files: 2 damaged, 1 unknown type"
  std::vector<CopiedPicture> copies;
  std::int64_t partly_compared = 0;  // images that were compared with some of the similar ones only
  std::vector<std::string> balance;  // sentences about the numbers of images of the classes
  CheckedSizes sizes;
  std::vector<OddImage> colors;
  std::optional<CheckedFeatures> features;
  std::vector<Fact> provenance;
};

// The pictures that the page shows first: those in several parts, then in several classes, then others.
struct SortedCopies {
  std::vector<const CopiedPicture*> leaks, conflicts, others;  // each picture is in one list
};
SortedCopies sorted_copies(const CheckReport& report);

struct CopyCounts {
  std::int64_t identical = 0, near = 0;  // files that could be left out
};
CopyCounts count_copies(const CheckReport& report);

// How many of each list the page shows with pictures.
struct CheckPageLimits {
  static constexpr std::size_t copies = 16, images_per_copy = 4, mislabels = 32, outliers = 16, odd = 16;
};

// At most `style.width` columns; lists are cut off after a few lines.
std::string check_text(const CheckReport& report, const TextStyle& style);
std::string check_page(const CheckReport& report);
std::string check_json(const CheckReport& report);

// CSV with the columns path,to,problem,because: what to move, paths below the folder. What should not be used
// goes to the hidden folder .aside, likely mislabels to the suggested class. Without `to` somebody must look:
// the same picture in two classes.
std::string check_fixes_csv(const CheckReport& report);

}  // namespace tandem
