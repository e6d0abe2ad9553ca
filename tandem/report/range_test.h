// What a learning-rate range test and a search for a batch size have measured.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

struct RangeTest {
  std::vector<double> rates;   // of the steps, rising
  std::vector<double> losses;  // smoothed, after each of them
  double chosen = 0;
};

}  // namespace tandem
