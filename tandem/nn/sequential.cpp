#include "tandem/nn/sequential.h"

#include <string>

#include "tandem/core/check.h"

namespace tandem {

Sequential::Sequential(Sequential&& other) noexcept : Module(), modules_(std::move(other.modules_)) {
  take_registrations(other, {});
}

void Sequential::append(std::unique_ptr<Module> module) {
  check(module != nullptr, "[sequential] expected a module, got none");
  add_child(std::to_string(modules_.size()), *module);
  modules_.push_back(std::move(module));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor result = x;
  for (const auto& module : modules_) result = module->forward(result);
  return result;
}

Module& Sequential::operator[](std::size_t index) const {
  check(index < modules_.size(), "[sequential] expected an index below {}, got {}", modules_.size(), index);
  return *modules_[index];
}

}  // namespace tandem
