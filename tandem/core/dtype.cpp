#include "tandem/core/dtype.h"

#include <fmt/ranges.h>

#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"

namespace tandem {

DType parse_dtype(std::string_view name) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i32, DType::i64})
    if (name_of(dtype) == name) return dtype;
  fail("expected one of the dtypes f32, f64, bf16, u8, i32, i64, got '{}'", name);
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << name_of(dtype);
}

void detail::throw_unsupported_dtype(std::string_view op, DType dtype, const DType* allowed, int count) {
  std::vector<std::string_view> names;
  for (DType candidate : std::span(allowed, count)) names.push_back(name_of(candidate));
  fail("[{}] expected dtype {}, got {}", op, fmt::join(names, " or "), name_of(dtype));
}

}  // namespace tandem
