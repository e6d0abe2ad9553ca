// Modules one after another, named "0", "1", …
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/nn/module.h"

namespace tandem {

class Sequential : public Module {
 public:
  // Adds a module at the end and gives access to it.
  template <class M, class... Args>
  M& emplace(Args&&... args) {
    auto module = std::make_unique<M>(std::forward<Args>(args)...);
    M& added = *module;
    append(std::move(module));
    return added;
  }
  void append(std::unique_ptr<Module> module);

  Tensor forward(const Tensor& x) override;

  std::size_t size() const { return modules_.size(); }
  Module& operator[](std::size_t index) const;

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace tandem
