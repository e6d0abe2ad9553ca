#include "tandem/study/studies.h"

#include "tandem/core/check.h"
#include "tandem/study/correlation.h"
#include "tandem/study/max.h"
#include "tandem/study/xxt.h"

namespace tandem {
namespace {

constexpr Study studies[] = {
    {"max", "element-wise maximum of two matrices", study_max},
    {"xxt", "products of every row of a matrix with every other", study_xxt},
    {"correlation", "weighted sums of every pixel's neighbours", study_correlation},
};

}  // namespace

std::span<const Study> all_studies() {
  return studies;
}

const Study& find_study(std::string_view name) {
  for (const Study& study : studies)
    if (study.name == name) return study;
  fail("expected a study out of max, xxt, correlation, all, got '{}'", name);
}

}  // namespace tandem
