// Module: a piece of a network with named parameters (what is trained) and buffers (what is only carried).
// A module's tensors and children are its own members, registered by name in its constructor; names of
// nested modules are joined by dots, as in PyTorch's state dicts. Modules do not move or copy.
#pragma once

#include <cstdint>
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
  // Parameters, then buffers, outside the tape, in the order of axes that weight files have.
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

  // From now on the parameters get no gradients and nothing is kept to compute any.
  void freeze();
  // Counts the occasions on which values may have been replaced: load_state_dict(), to(), train(),
  // drop_derived(). What was derived from the values is good as long as it stands, for a module that is
  // trained is set to train first.
  std::uint64_t revision() const { return revision_; }
  // What was derived from the values is derived anew when it is next needed. Belongs before and after a
  // forward() that is captured: a replay must derive it again, and what the graph holds of it is the graph's.
  void drop_derived();

 protected:
  Module() = default;
  // The tensors and modules must be members of this one, or live as long.
  // From now on the parameter requires a gradient. `file_axes`: which of its axes are the first, second, … of
  // the tensor in a weight file; none where they are the same.
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
  void collect(Part part, const std::string& prefix, bool as_in_files, NamedTensors& into) const;

  std::vector<NamedMember> parameters_, buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
  std::uint64_t revision_ = 0;
};

}  // namespace tandem
