#include "tandem/ops/bias.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"

namespace tandem {

Tensor add_bias(const Tensor& x, const Tensor& bias) {
  common_device("add_bias", {&x, &bias});
  common_dtype("add_bias", {&x, &bias});
  check(x.rank() >= 1 && bias.rank() == 1 && x.size(-1) == bias.size(0),
        "[add_bias] expected shapes (…, n) and (n), got {} and {}", x.shape(), bias.shape());
  return add(x, bias);
}

}  // namespace tandem
