// tandem filter, run as a program: its output files, and no files left after a failure.
#include <gtest/gtest.h>

#include "tandem/augment/photo_filter.h"
#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"
#include "tests/apps/program.h"

namespace tandem {
namespace {

class FilterCommand : public testing::Test {
 protected:
  FilterCommand() : photo_(example_photo(36, 52)) { save_png(folder_ / "photo.png", photo_); }

  // Runs the filter on photo.png, expects success and nothing on standard error, and reads the written image.
  Image filtered(std::vector<std::string> words) {
    words.insert(words.begin(), {"filter", "photo.png", "-o", "out.png"});
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out.rfind("Wrote out.png (", 0), 0u) << result.out;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(folder_.count(), 2u);
    return load_image(folder_ / "out.png");
  }

  TempFolder folder_;
  Image photo_;
};

TEST_F(FilterCommand, NamedFilter_WritesPngOfSameSize) {
  for (const PhotoFilter& filter : builtin_filters().rows()) {
    const Image image = filtered({"--filter", filter.name});
    EXPECT_EQ(image, apply_filter(photo_, filter)) << filter.name;
  }
}

TEST_F(FilterCommand, All_WritesContactSheet) {
  EXPECT_EQ(filtered({"--filter", "all"}), filter_sheet(photo_));
}

TEST_F(FilterCommand, Kernel_IsCorrelationOrGradient) {
  const std::string kernel = "-1 0 1; -2 0 2";
  const Image plain = filtered({"--kernel", kernel});
  const Image gradient = filtered({"--kernel", kernel, "--gradient", "--device", "cpu"});
  EXPECT_EQ(plain, apply_filter(photo_, parse_filter(kernel, false)));
  EXPECT_EQ(gradient, apply_filter(photo_, parse_filter(kernel, true)));
  EXPECT_NE(plain, gradient);
}

TEST_F(FilterCommand, Jpeg_IsRotatedByExifOrientation) {
  const std::string jpeg = (golden_folder() / "exif_6.jpg").string();
  const Image photo = load_image(jpeg);
  const ProgramResult result =
      run_program({"filter", jpeg, "--filter", "sobel1", "-o", "out.png"}, folder_.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(load_image(folder_ / "out.png"), apply_filter(photo, builtin_filters().get("sobel1")));
}

TEST_F(FilterCommand, Example_NeedsNoFile) {
  const ProgramResult result =
      run_program({"filter", "example", "--filter", "ring", "-o", "out.png"}, folder_.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(load_image(folder_ / "out.png"),
            apply_filter(example_photo(640, 960), builtin_filters().get("ring")));
}

TEST_F(FilterCommand, UnusualFileNames_Work) {
  for (const std::string name : {"with space", "quo\"te's", "new\nline", "größe 写真 📷", "-dash", "%s{}"}) {
    std::filesystem::copy_file(folder_ / "photo.png", folder_ / (name + ".jpg"));
    const ProgramResult result = run_program(
        {"filter", "./" + name + ".jpg", "--filter", "ring", "-o", "./" + name + ".png"}, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(load_image(folder_ / (name + ".png")), apply_filter(photo_, builtin_filters().get("ring")))
        << name;
  }
}

TEST_F(FilterCommand, ExistingOutput_IsReplaced) {
  put_bytes(folder_ / "out.png", "old");
  EXPECT_EQ(filtered({"--filter", "ring"}), apply_filter(photo_, builtin_filters().get("ring")));
  const ProgramResult result =
      run_program({"filter", "photo.png", "--filter", "ring", "-o", "photo.png"}, folder_.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(load_image(folder_ / "photo.png"), apply_filter(photo_, builtin_filters().get("ring")));
}

}  // namespace
}  // namespace tandem
