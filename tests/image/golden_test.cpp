// Files written by other programs, compared with the pixels PIL reads from them
// (tests/golden/make_image_cases.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tandem/image/decode.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

struct Case {
  std::string file;
  int64_t height, width;
  int channels, tolerance;
};

void PrintTo(const Case& expected, std::ostream* out) {
  *out << expected.file;
}

class ImageGolden : public testing::TestWithParam<Case> {};

TEST_P(ImageGolden, EqualsStoredPixels) {
  const Case& expected = GetParam();
  if (!can_decode_file(expected.file)) GTEST_SKIP() << "no decoder";
  const Image image = load_image(golden_folder() / expected.file);
  ASSERT_EQ(image.height, expected.height);
  ASSERT_EQ(image.width, expected.width);
  ASSERT_EQ(image.channels, expected.channels);
  const std::vector<uint8_t> pixels = read_bytes(golden_folder() / (expected.file + ".raw"));
  ASSERT_EQ(image.pixels.size(), pixels.size());
  int max_difference = 0;
  for (size_t i = 0; i < pixels.size(); ++i)
    max_difference = std::max(max_difference, std::abs(image.pixels[i] - pixels[i]));
  EXPECT_LE(max_difference, expected.tolerance);
}

std::vector<Case> cases() {
  std::ifstream file(golden_folder() / "cases.json");
  std::vector<Case> result;
  for (const nlohmann::json& row : nlohmann::json::parse(file))
    result.push_back({row["file"], row["height"], row["width"], row["channels"], row["tolerance"]});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Files, ImageGolden, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.file;
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace tandem
