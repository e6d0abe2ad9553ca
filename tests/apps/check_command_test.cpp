// tandem check, run as a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CheckCommand : public testing::Test {
 protected:
  CheckCommand() {
    write_photos(folder_ / "photos/train", 5);
    write_photos(folder_ / "photos/test", 3, 20);
  }
  ProgramResult check(Words words) {
    words.insert(words.begin(), "check");
    return run_program(words, folder_.path());
  }
  // One line of error that contains `part`, and nothing on standard output.
  void expect_error(const Words& words, const std::string& part, int status = 1) {
    const ProgramResult result = check(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, part)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::recursive_directory_iterator(folder_ / "photos"),
                      std::filesystem::recursive_directory_iterator()));
  }

  TempFolder folder_;
};

TEST_F(CheckCommand, Outputs_AgreeAndNothingIsMoved) {
  std::filesystem::copy_file(folder_ / "photos/train/red/photo 101.png", folder_ / "photos/test/red/x\t.png");
  put_bytes(folder_ / "photos/train/red/bad.png", "no image");
  const std::size_t before = files();
  const ProgramResult result = check({"photos", "--html", "c.html", "--json", "c.json", "--fix", "list.csv"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(files(), before);
  for (const char* part : {"photos: 17 images in 2 classes", "Not read: 1 file: 1 damaged",
                           "In several parts of the data: 1 picture", "  = test/red/x .png"})
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
  EXPECT_TRUE(contains(result.err, "Read and compared 17 images")) << result.err;
  EXPECT_EQ(check({"photos", "--no-sandbox"}).out, check({"photos"}).out);
  const auto json = nlohmann::json::parse(text_of(folder_ / "c.json"));
  EXPECT_EQ(json["copies"][0]["files"][1]["path"], "test/red/x\t.png");
  EXPECT_EQ(json["provenance"]["command"], "tandem check photos --html c.html --json c.json --fix list.csv");
  EXPECT_EQ(text_of(folder_ / "list.csv"),
            "path,to,problem,because\n"
            "train/red/bad.png,.aside/train/red/bad.png,not read,\"not an image of a known format (JPEG, "
            "PNG, WebP, "
            "BMP, PBM, PGM, PPM, TIFF, HEIC)\"\n"
            "train/red/photo 101.png,.aside/train/red/photo 101.png,in several parts,test/red/x\t.png\n");
  EXPECT_TRUE(contains(text_of(folder_ / "c.html"), "data:image/jpeg;base64,"));
}

TEST_F(CheckCommand, JsonOnStandardOutput_ReplacesTheText) {
  const ProgramResult result = check({"photos", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["images"], 16);
}

TEST_F(CheckCommand, Model_SuggestsLabels) {
  std::filesystem::rename(folder_ / "photos/train/red/photo 100.png",
                          folder_ / "photos/train/blue/wrong.png");
  const ProgramResult result =
      check({"photos", "--pretrained", "random", "--image-size", "32", "--device", "cpu", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["features"]["folds"], 5);
  ASSERT_GE(json["features"]["mislabels"].size(), 1U);
  EXPECT_EQ(json["features"]["mislabels"][0]["path"], "train/blue/wrong.png");
  EXPECT_EQ(json["features"]["mislabels"][0]["suggested"], "red");
}

TEST_F(CheckCommand, BadInput_IsOneLine) {
  expect_error({}, "DATA is required", 2);
  expect_error({"nothing"}, "nothing: no such folder");
  expect_error({"photos/train/red/photo 100.png"}, "expected a folder of images, got a file");
  std::filesystem::create_directories(folder_ / "empty/class");
  expect_error({"empty"}, "empty: expected images that can be read, got none");
  put_bytes(folder_ / "empty/class/1.jpg", "");
  expect_error({"empty"}, "got none in 1 file: 1 damaged");
  expect_error({"photos", "--fix", "missing/list.csv"}, "cannot write missing/list.csv");
  expect_error({"photos", "--html", "photos"}, "photos");
  expect_error({"photos", "--max-pixels", "0"}, "--max-pixels: expected a whole number from 1", 2);
  expect_error({"photos", "--model", "scense"}, "got 'scense'; did you mean 'scenes'?");
  expect_error({"photos", "--image-size", "2"}, "--image-size: expected a whole number from 8", 2);
  expect_error({"photos", "--device", "tpu"}, "--device", 2);
  expect_error({"photos", "--max-pixels", "10"}, "got none in 16 files: 16 too large");
}

TEST_F(CheckCommand, FullDisk_IsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  for (const char* flag : {"--fix", "--html", "--json"}) {
    const ProgramResult result = check({"photos", flag, "/dev/full"});
    EXPECT_EQ(result.status, 1) << flag;
    EXPECT_TRUE(contains(result.err, "No space left on device")) << result.err;
  }
}

}  // namespace
}  // namespace tandem
