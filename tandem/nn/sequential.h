// Modules applied one after another, named "0", "1", …
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/nn/module.h"

namespace tandem {

/// Owns its modules; forward() applies them in order. Without modules it is the identity.
class Sequential : public Module {
 public:
  Sequential() = default;
  /// Takes modules: Sequential(Flatten(), Linear(784, 32), ReLU(), Linear(32, 10)). Each is a temporary of a
  /// module that can be moved, or a std::unique_ptr to any module.
  template <class... Modules>
  requires(sizeof...(Modules) > 0) explicit Sequential(Modules&&... modules) {
    (append(owned(std::forward<Modules>(modules))), ...);
  }
  Sequential(Sequential&& other) noexcept;

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
  template <class M>
  static std::unique_ptr<Module> owned(std::unique_ptr<M>&& module) {
    return std::move(module);
  }
  template <class M>
  static std::unique_ptr<Module> owned(M&& module) {
    static_assert(!std::is_lvalue_reference_v<M>, "Sequential owns its modules: pass std::move(layer)");
    static_assert(std::derived_from<M, Module>, "Sequential takes modules");
    static_assert(std::move_constructible<M>,
                  "this module cannot be moved: pass std::make_unique<M>(...), or use emplace<M>(...)");
    return std::make_unique<M>(std::move(module));
  }

  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace tandem
