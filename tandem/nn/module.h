// Module: the base class of layers and networks. It has named parameters (trained) and buffers (not trained,
// but saved). Tensors and child modules are members that the constructor registers by name; nested names are
// joined by dots, as in PyTorch's state dicts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

class Module;

/// A child module and its name, for Module::add_children().
struct NamedModule {
  std::string name;
  Module& module;
};

/// Base class of layers and networks. Not copied; only the layers of this library, which have no children
/// that are members, can be moved. Not thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) { return forward(x); }

  /// Handles that share the module's memory, gradients and freezing:
  /// for (auto& p : model.parameters()) p.tensor.set_requires_grad(false) freezes the model.
  NamedTensors parameters() const;
  /// Handles that share the module's memory.
  NamedTensors buffers() const;
  /// Parameters, then buffers, detached, with the axis order of weight files. They share the module's memory.
  NamedTensors state_dict() const;
  /// Copies the values of all parameters and buffers from any device. Every name must be present once with
  /// the same shape and dtype; otherwise throws an Error that lists the differences, and changes nothing.
  void load_state_dict(const NamedTensors& state);

  /// Moves parameters, gradients and buffers, and returns this module. Construct optimizers afterwards: they
  /// hold the old parameters, and their step() throws Error.
  Module& to(Device device);
  /// The same for a name: model.to("cuda:0"). Throws Error when there is no such device.
  Module& to(std::string_view device) { return to(parse_device(device)); }
  /// Sets training mode for this module and all its children.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /// Drops the gradients of all parameters.
  void zero_grad();

  /// Makes all parameters not require gradients: backward() and optimizers leave them alone.
  void freeze();
  /// Makes all parameters require gradients again.
  void unfreeze();
  /// Incremented whenever values may have changed: load_state_dict(), to(), train(), invalidate_caches().
  /// Data derived from the parameters, such as folded weights, stays valid while the revision is the same:
  /// training starts with train().
  std::uint64_t revision() const { return revision_; }
  /// Discards data derived from the parameters; it is recomputed when needed. Call it before and after
  /// capturing a forward() in a graph: a replay must recompute the data, and memory captured by the graph
  /// belongs to the graph.
  void invalidate_caches();

 protected:
  Module() = default;
  /// The registered tensors and modules must outlive this module; usually they are its members. Names must be
  /// distinct and not empty; otherwise these functions throw Error.
  /// Makes the parameter require a gradient. `file_axes` is the permutation of its axes in state dicts and
  /// files; empty for the same order.
  void add_parameter(std::string name, Tensor& parameter, Dims file_axes = {});
  void add_buffer(std::string name, Tensor& buffer);
  void add_child(std::string name, Module& child);
  /// add_child() for each: add_children({{"conv", conv}, {"output", output}}).
  void add_children(std::initializer_list<NamedModule> children);

  /// For the move constructor or assignment of a layer: takes the registrations and the mode of `from`. Its
  /// parameters and then its buffers are now `tensors`, members of this layer that were moved from those of
  /// `from`, in the order of registration; more tensors than registrations are ignored. Children keep their
  /// addresses, so they must not be members.
  void take_registrations(Module& from, std::initializer_list<Tensor*> tensors) noexcept;
  /// Tells optimizers that hold this parameter that it is not a parameter of this module any more.
  static void mark_replaced(const Tensor& parameter);

 private:
  enum class Part { parameters, buffers };
  struct NamedMember {
    std::string name;
    Tensor* tensor;
    Dims file_axes;
  };

  std::vector<NamedMember>& members(Part part) { return part == Part::parameters ? parameters_ : buffers_; }
  void check_new_name(const char* what, const std::string& name) const;
  void collect(Part part, const std::string& prefix, bool for_state_dict, NamedTensors& into) const;

  std::vector<NamedMember> parameters_, buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
  std::uint64_t revision_ = 0;
};

/// Base class of modules without tensors and children, such as activations. These can be moved.
class StatelessModule : public Module {
 protected:
  StatelessModule() = default;
  StatelessModule(StatelessModule&& other) noexcept : Module() { take_registrations(other, {}); }
};

}  // namespace tandem
