// train_classify MODEL [SIDE [CALLS [DEVICE [PRECISION]]]]: the latency of Classifier for one image of
// SIDE × SIDE pixels as a line of JSON, with the resident memory after a tenth of the calls and after all of
// them. bench/latency starts it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "tandem/train/classifier.h"

namespace tandem {
namespace {

std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::strtoll(line.c_str() + 6, nullptr, 10);
  return 0;
}

void measure(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t i, const char* unless) { return words.size() > i ? words[i] : unless; };
  const std::int64_t side = std::stoll(word(1, "224")), calls = std::max(std::stoll(word(2, "200")), 10LL);
  const Classifier classifier(
      words.at(0), {.device = parse_device(word(3, "cpu")), .precision = parse_precision(word(4, "fp32"))});
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(side * side * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * 7);
  const ImageView image(rgb.data(), side, side, 3, 3 * side);
  Prediction answer;
  std::vector<float> ms(static_cast<std::size_t>(calls));
  std::int64_t early_kib = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    classifier.classify({&image, 1}, {&answer, 1});
    ms[i] = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (i == ms.size() / 10) early_kib = resident_kib();
  }
  const std::int64_t late_kib = resident_kib();
  std::ranges::sort(ms);
  fmt::print(R"({{"median_ms": {:.4f}, "min_ms": {:.4f}, "calls": {}, "early_kib": {}, "late_kib": {}}})"
             "\n",
             ms[ms.size() / 2], ms[0], calls, early_kib, late_kib);
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  try {
    tandem::measure({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_classify: error: {}\n", error.what());
    return 1;
  }
}
