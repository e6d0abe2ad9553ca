// Modules applied one after another, named "0", "1", …
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/nn/module.h"

namespace tandem {

/// Owns its modules; forward() applies them in order. Without modules it is the identity.
class Sequential : public Module {
 public:
  /// Constructs a module at the end and returns it.
  template <class M, class... Args>
  M& emplace(Args&&... args) {
    auto module = std::make_unique<M>(std::forward<Args>(args)...);
    M& added = *module;
    append(std::move(module));
    return added;
  }
  /// Adds a module at the end; throws Error for a null pointer.
  void append(std::unique_ptr<Module> module);

  Tensor forward(const Tensor& x) override;

  std::size_t size() const { return modules_.size(); }
  /// Throws Error for an index out of range.
  Module& operator[](std::size_t index) const;

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace tandem
