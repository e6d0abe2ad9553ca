// Module: a piece of a network with named parameters (what is trained) and buffers (what is only carried).
// A module's tensors and children are its own members, registered by name in its constructor; names of
// nested modules are joined by dots, as in PyTorch's state dicts. Modules do not move or copy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) { return forward(x); }

  // Handles that share the module's memory; parameters keep their place on the tape.
  NamedTensors parameters() const;
  NamedTensors buffers() const;
  // Parameters, then buffers, outside the tape.
  NamedTensors state_dict() const;
  // Copies the values of all parameters and buffers, from any device. Every name must be there once with the
  // same shape and dtype; otherwise an Error lists what does not fit, and nothing is changed.
  void load_state_dict(const NamedTensors& state);

  // Moves everything, gradients too; an optimiser is made after that, as it holds the parameters.
  void to(Device device);
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad();

 protected:
  Module() = default;
  // The tensors and modules must be members of this one, or live as long.
  void add_parameter(std::string name, Tensor& parameter);  // from now on it requires a gradient
  void add_buffer(std::string name, Tensor& buffer);
  void add_child(std::string name, Module& child);

 private:
  enum class Part { parameters, buffers };
  struct NamedMember {
    std::string name;
    Tensor* tensor;
  };

  std::vector<NamedMember>& members(Part part) { return part == Part::parameters ? parameters_ : buffers_; }
  void collect(Part part, const std::string& prefix, NamedTensors& into) const;

  std::vector<NamedMember> parameters_, buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
};

}  // namespace tandem
