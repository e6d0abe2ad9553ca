// The stored cases themselves: enough of them, every array inside its file, and the rule each file claims,
// recomputed here by plain loops, so that a damaged or stale file is told apart from a wrong operation.
#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tandem/core/error.h"

namespace tandem {
namespace {

class GoldenFile : public testing::TestWithParam<const char*> {};

TEST_P(GoldenFile, HoldsAtLeastSixtyCasesWithDistinctNames) {
  const auto cases = golden::load(GetParam());
  EXPECT_GE(cases.size(), 60U);
  std::set<std::string> names;
  for (const auto& one : cases) names.insert(one.name);
  EXPECT_EQ(names.size(), cases.size());
}

TEST_P(GoldenFile, ArraysFillTheFileWithoutOverlap) {
  const auto cases = golden::load(GetParam());
  ASSERT_FALSE(cases.empty());
  const golden::Bytes& file = *cases.front().arrays.begin()->second.file;
  std::set<std::pair<const std::byte*, size_t>> pieces;
  for (const auto& one : cases)
    for (const auto& [key, array] : one.arrays)
      pieces.emplace(array.data, array.count * golden::size_of(array.dtype));
  const std::byte* end = file.data();
  for (const auto& [start, bytes] : pieces) {
    EXPECT_EQ(start, end);
    end = start + (bytes + 7) / 8 * 8;
  }
  EXPECT_EQ(end, file.data() + file.size());
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenFile,
                         testing::Values("correlation", "xxt", "maximum", "ops", "augment", "conv"),
                         [](const auto& file) { return std::string(file.param); });

TEST(Golden, CorrelationLeavesHalfAKernelBeforeThePixel) {
  for (const auto& one : golden::load("correlation")) {
    const auto image = one.array("image").values<double>();
    const auto kernel = one.array("kernel").values<double>();
    const auto expected = one.array("expected").values<double>();
    const int64_t height = one.array("image").shape[0], width = one.array("image").shape[1];
    const int64_t rows = one.array("kernel").shape[0], columns = one.array("kernel").shape[1];
    ASSERT_EQ(expected.size(), image.size()) << one.name;
    double worst = 0;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            const int64_t from_y = y + i - rows / 2, from_x = x + j - columns / 2;
            if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
              sum += kernel[i * columns + j] * image[from_y * width + from_x];
          }
        worst = std::max(worst, std::abs(sum - expected[y * width + x]));
      }
    EXPECT_LT(worst, 1e-11) << one.name;
  }
}

TEST(Golden, XxtIsTheProductOfRows) {
  for (const auto& one : golden::load("xxt")) {
    const auto x = one.array("x").values<double>();
    const auto expected = one.array("expected").values<double>();
    const int64_t n = one.array("x").shape[0], depth = one.array("x").shape[1];
    ASSERT_EQ(one.array("expected").shape, (std::vector<int64_t>{n, n})) << one.name;
    double worst = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += x[i * depth + k] * x[j * depth + k];
        worst = std::max(worst, std::abs(sum - expected[i * n + j]));
      }
    EXPECT_LT(worst, 1e-11) << one.name;
  }
}

TEST(Golden, MaximumCarriesNaN) {
  size_t nan_results = 0;
  for (const auto& one : golden::load("maximum")) {
    const auto a = one.array("a").values<double>(), b = one.array("b").values<double>();
    const auto expected = one.array("expected").values<double>();
    nan_results += static_cast<size_t>(
        std::count_if(expected.begin(), expected.end(), [](double v) { return std::isnan(v); }));
    if (one.array("a").shape != one.array("b").shape) continue;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(a[i]) || std::isnan(b[i])) {
        EXPECT_TRUE(std::isnan(expected[i])) << one.name;
      } else {
        EXPECT_EQ(expected[i], std::max(a[i], b[i])) << one.name;
      }
    }
  }
  EXPECT_GT(nan_results, 10U);
}

TEST(Golden, OpsNameTheirOperationAndShapeTheirGradients) {
  std::set<std::string> seen;
  for (const auto& one : golden::load("ops")) {
    seen.insert(one.params.at("op").get<std::string>());
    for (const auto& [key, array] : one.arrays) {
      if (key.rfind("grad_", 0) != 0) continue;
      const std::string owner = key == "grad_out" ? "expected" : key.substr(5);
      EXPECT_EQ(array.shape, one.array(owner).shape) << one.name << ": " << key;
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"add", "argmax", "bias_add", "concat", "div", "gather_rows",
                                         "log_softmax", "matmul", "mean", "mul", "permute", "relu", "sigmoid",
                                         "softmax", "sub", "sum", "tanh"}));
}

TEST(Golden, NamesWhatIsMissing) {
  EXPECT_THROW(golden::load("no-such-file"), Error);
  EXPECT_THROW(golden::load("xxt").front().array("no-such-array"), Error);
}

TEST(Golden, RefusesAnArrayOutsideTheFile) {
  const auto file = std::make_shared<const golden::Bytes>(64);
  const auto read = [&](size_t offset) {
    return golden::read_array({{"dtype", "f64"}, {"shape", {2, 2}}, {"offset", offset}}, file, "test");
  };
  EXPECT_EQ(read(32).count, 4U);
  EXPECT_THROW(read(40), Error);
  EXPECT_THROW(read(4), Error);
  EXPECT_THROW(read(72), Error);
  EXPECT_THROW(golden::read_array({{"dtype", "f16"}, {"shape", {1}}, {"offset", 0}}, file, "test"), Error);
}

}  // namespace
}  // namespace tandem
