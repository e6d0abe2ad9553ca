// The three matrix products of a linear layer, Y = X·Wᵀ + b, dX = dY·W and dW = dYᵀ·X: plain loops against
// tuned products. All three need the same number of operations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

// "784x200 batch 16": a layer with 784 inputs and 200 outputs, all three products. "784x200 batch 16 dW":
// one.
struct LinearCase {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t batch = 0;
  std::string product;  // "Y", "dX" or "dW"; empty: all three

  std::string layer() const;  // "784x200"
};

// Throws Error if the text is not such a case.
LinearCase parse_linear_case(std::string_view text);

// What the rows say about batch sizes and the three products.
std::vector<std::string> linear_findings(const std::vector<StudyRow>& rows);

StudyReport study_linear(const StudyOptions& options = {});

}  // namespace tandem
