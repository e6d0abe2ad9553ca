// Module: the base class of layers and networks. It has named parameters (trained) and buffers (not trained,
// but saved). Tensors and child modules are members that the constructor registers by name; nested names are
// joined by dots, as in PyTorch's state dicts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

/// Base class of layers and networks. Neither copied nor moved; not thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) { return forward(x); }

  /// Handles that share the module's memory and require gradients as the parameters do.
  NamedTensors parameters() const;
  /// Handles that share the module's memory.
  NamedTensors buffers() const;
  /// Parameters, then buffers, detached, with the axis order of weight files. They share the module's memory.
  NamedTensors state_dict() const;
  /// Copies the values of all parameters and buffers from any device. Every name must be present once with
  /// the same shape and dtype; otherwise throws an Error that lists the differences, and changes nothing.
  void load_state_dict(const NamedTensors& state);

  /// Moves parameters, gradients and buffers. Construct optimizers afterwards: they hold the old parameters.
  void to(Device device);
  /// Sets training mode for this module and all its children.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /// Drops the gradients of all parameters.
  void zero_grad();

  /// Makes all parameters not require gradients.
  void freeze();
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
  /// The registered tensors and modules must outlive this module; usually they are its members.
  /// Makes the parameter require a gradient. `file_axes` is the permutation of its axes in state dicts and
  /// files; empty for the same order.
  void add_parameter(std::string name, Tensor& parameter, Dims file_axes = {});
  void add_buffer(std::string name, Tensor& buffer);
  void add_child(std::string name, Module& child);

 private:
  enum class Part { parameters, buffers };
  struct NamedMember {
    std::string name;
    Tensor* tensor;
    Dims file_axes;
  };

  std::vector<NamedMember>& members(Part part) { return part == Part::parameters ? parameters_ : buffers_; }
  void collect(Part part, const std::string& prefix, bool for_state_dict, NamedTensors& into) const;

  std::vector<NamedMember> parameters_, buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
  std::uint64_t revision_ = 0;
};

}  // namespace tandem
