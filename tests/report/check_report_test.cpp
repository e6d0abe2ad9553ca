// The text, page, JSON and list of fixes of a check.
#include "tandem/report/check_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

CheckedImage image(const std::string& path, std::int64_t side = 100) {
  const std::size_t slash = path.find('/'), next = path.find('/', slash + 1);
  return {.path = path,
          .part = path.substr(0, slash),
          .label = path.substr(slash + 1, next - slash - 1),
          .height = side,
          .width = side};
}

CheckReport example() {
  CheckReport report{.data = "photos", .parts = {"train", "test"}};
  report.classes = {{"cat", {40, 10}}, {"dog", {30, 0}}};
  report.images = 80;
  report.seconds = 0.5;
  report.not_read = {{"train/cat/cut, \n.jpg", "cut short", SkipKind::damaged},
                     {"train/notes.txt", "unknown type .txt", SkipKind::unknown_type}};
  report.not_read_counts = "2 files: 1 damaged, 1 unknown type";
  report.copies = {
      {{image("train/cat/1.jpg"), image("test/cat/2.jpg"), image("train/cat/3.jpg", 50)}, {0, 0, 2}},
      {{image("train/cat/4.jpg"), image("train/dog/5.jpg")}, {0, 0}},
      {{image("train/dog/6.jpg", 50), image("train/dog/a/7.jpg"), image("train/dog/8.jpg", 50)}, {0, 1, 0}}};
  report.balance = {"Class 'dog' has no images in test."};
  report.sizes = {.min_side = 50,
                  .median_side = 100,
                  .max_side = 100,
                  .min_aspect = 1,
                  .median_aspect = 1,
                  .max_aspect = 1.5,
                  .frequent = {{100, 100, 70}},
                  .shorter_sides = {0, 0, 0, 0, 0, 10, 70},
                  .odd = {{image("train/dog/<b>.jpg"), "12x12, small for a median of 100"}}};
  report.features =
      CheckedFeatures{.model = "scenes", .weights = "resnet18", .images = 80, .folds = 5, .accuracy = 0.95};
  report.features->mislabels = {{image("train/dog/deep/9.jpg"), "cat", 0.01, 0.985}};
  report.features->outliers = {{image("train/cat/10.jpg"), 3.25}};
  report.provenance = {{"command", "tandem check photos"}};
  return report;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CheckReport, Copies_AreCountedAndSorted) {
  const CheckReport report = example();
  const auto [identical, near] = count_copies(report);
  EXPECT_EQ(identical, 3);  // 2, 5 and 8
  EXPECT_EQ(near, 2);       // 3 and 7
  const SortedCopies sorted = sorted_copies(report);
  EXPECT_EQ(sorted.leaks, std::vector<const CopiedPicture*>{&report.copies[0]});
  EXPECT_EQ(sorted.conflicts, std::vector<const CopiedPicture*>{&report.copies[1]});
  EXPECT_EQ(sorted.others, std::vector<const CopiedPicture*>{&report.copies[2]});
}

TEST(CheckReport, Text_HasAllFindingsInEightyColumns) {
  CheckReport report = example();
  report.copies[2].images[1].path = "train/dog/" + std::string(200, 'x') + "/the end.jpg";
  const std::string text = check_text(report, {.width = 80});
  for (const char* part :
       {"photos: 80 images in 2 classes\n", "Not read: 2 files: 1 damaged, 1 unknown type\n",
        "  train/cat/cut,  .jpg: cut short\n", "In several parts of the data: 1 picture\n",
        "  = test/cat/2.jpg (100x100)\n  ~ train/cat/3.jpg (50x50)\n", "In several classes: 1 picture\n",
        "  = train/dog/5.jpg\n", "xxx/the end.jpg (100x100)\n",
        "cross-validation: it agrees with 95.0 % of the labels.\n", "  train/dog/deep/9.jpg: cat 98 %\n",
        "  train/cat/10.jpg: 3.2 times the usual distance\n", "Class 'dog' has no images in test.\n",
        "Shorter side 50 to 100, median 100", "  train/dog/<b>.jpg: 12x12, small for a median of 100\n"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

TEST(CheckReport, LongLists_AreCutOff) {
  CheckReport report = example();
  report.not_read.resize(30, report.not_read[0]);
  EXPECT_TRUE(contains(check_text(report, {.width = 80}), "  … and 22 more; --json has all\n"));
}

TEST(CheckReport, Page_ShowsPicturesAndEscapesNames) {
  CheckReport report = example();
  report.copies[0].images[0].picture = "\xff\xd8 bytes";
  const std::string page = check_page(report);
  for (const char* part :
       {"<title>Check of photos</title>", "src=\"data:image/jpeg;base64,/9ggYnl0ZXM=\"",
        "In several parts: 1</h2>", "train/<wbr/>dog/<wbr/>&lt;b&gt;.jpg", "<b>dog</b>, more like <b>cat</b>",
        "100x100, same bytes", "50x50, same picture", "tandem check photos"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "<b>.jpg"));
  EXPECT_FALSE(contains(page, "src=\"http"));
}

TEST(CheckReport, Json_HasEverything) {
  const auto json = nlohmann::json::parse(check_json(example()));
  EXPECT_EQ(json["images"], 80);
  EXPECT_EQ(json["identical_copies"], 3);
  EXPECT_EQ(json["near_copies"], 2);
  EXPECT_EQ(json["classes"][1]["images"]["test"], 0);
  EXPECT_EQ(json["not_read"][0]["kind"], "damaged");
  EXPECT_EQ(json["copies"][0]["in_several_parts"], true);
  EXPECT_EQ(json["copies"][0]["files"][1]["same_bytes_as"], "train/cat/1.jpg");
  EXPECT_FALSE(json["copies"][0]["files"][2].contains("same_bytes_as"));
  EXPECT_EQ(json["features"]["mislabels"][0]["suggested"], "cat");
  EXPECT_EQ(json["features"]["outliers"][0]["distance"], 3.25);
  EXPECT_EQ(json["provenance"]["command"], "tandem check photos");
}

TEST(CheckReport, Fixes_KeepTestImagesAndTheLargest) {
  EXPECT_EQ(check_fixes_csv(example()),
            "path,to,problem,because\n"
            "\"train/cat/cut, \n.jpg\",\".aside/train/cat/cut, \n.jpg\",not read,cut short\n"
            "train/cat/1.jpg,.aside/train/cat/1.jpg,in several parts,test/cat/2.jpg\n"
            "train/cat/3.jpg,.aside/train/cat/3.jpg,in several parts,test/cat/2.jpg\n"
            "train/cat/4.jpg,,in several classes,train/dog/5.jpg\n"
            "train/dog/5.jpg,,in several classes,train/cat/4.jpg\n"
            "train/dog/6.jpg,.aside/train/dog/6.jpg,copy,train/dog/a/7.jpg\n"
            "train/dog/8.jpg,.aside/train/dog/8.jpg,copy,train/dog/a/7.jpg\n"
            "train/dog/deep/9.jpg,train/cat/deep/9.jpg,likely mislabel,\"dog 0.010, cat 0.985\"\n");
}

}  // namespace
}  // namespace tandem
