#include "tandem/nn/copy_named.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

// "; missing: a, b", or nothing when there are no names.
std::string clause(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  constexpr std::size_t max_shown = 8;
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(names.size(), max_shown));
  const std::string rest =
      names.size() > max_shown ? fmt::format(" and {} more", names.size() - max_shown) : "";
  return fmt::format("; {}: {}{}", what, fmt::join(first, ", "), rest);
}

std::string description(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} {}", name_of(tensor.dtype()), tensor.shape().to_string())
                          : "none";
}

}  // namespace

void copy_named(const char* op, const NamedTensors& to, const NamedTensors& from) {
  std::map<std::string, Tensor> given;
  std::vector<std::string> missing, unexpected, repeated, different;
  for (const auto& [name, tensor] : from)
    if (!given.emplace(name, tensor).second) repeated.push_back(name);
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, tensor] : to) {
    const auto found = given.extract(name);
    if (found.empty())
      missing.push_back(name);
    else if (found.mapped().defined() && found.mapped().shape() == tensor.shape() &&
             found.mapped().dtype() == tensor.dtype())
      copies.emplace_back(tensor.detach(), found.mapped().detach());
    else
      different.push_back(
          fmt::format("{} (expected {}, got {})", name, description(tensor), description(found.mapped())));
  }
  for (const auto& [name, tensor] : given) unexpected.push_back(name);
  check(missing.empty() && unexpected.empty() && repeated.empty() && different.empty(),
        "[{}] expected the {} tensors of this model{}{}{}{}", op, to.size(), clause("missing", missing),
        clause("unexpected", unexpected), clause("given twice", repeated), clause("different", different));
  for (const auto& [own, value] : copies) copy_into(own, value.to(own.device()));
}

}  // namespace tandem
