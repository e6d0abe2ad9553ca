#include "tandem/nn/module.h"

#include "tandem/nn/copy_named.h"

namespace tandem {
void Module::add_parameter(std::string name, Tensor& parameter) {
  parameter.set_requires_grad();
  parameters_.push_back({std::move(name), &parameter});
}

void Module::add_buffer(std::string name, Tensor& buffer) {
  buffers_.push_back({std::move(name), &buffer});
}

void Module::add_child(std::string name, Module& child) {
  child.train(training_);
  children_.emplace_back(std::move(name), &child);
}

void Module::collect(Part part, const std::string& prefix, NamedTensors& into) const {
  for (const NamedMember& member : part == Part::parameters ? parameters_ : buffers_)
    into.push_back({prefix + member.name, *member.tensor});
  for (const auto& [name, child] : children_) child->collect(part, prefix + name + ".", into);
}

NamedTensors Module::parameters() const {
  NamedTensors all;
  collect(Part::parameters, "", all);
  return all;
}

NamedTensors Module::buffers() const {
  NamedTensors all;
  collect(Part::buffers, "", all);
  return all;
}

NamedTensors Module::state_dict() const {
  NamedTensors all = parameters();
  collect(Part::buffers, "", all);
  for (NamedTensor& one : all) one.tensor = one.tensor.detach();
  return all;
}

void Module::load_state_dict(const NamedTensors& state) {
  copy_named("load_state_dict", state_dict(), state);
}

void Module::to(Device device) {
  for (const Part part : {Part::parameters, Part::buffers})
    for (const NamedMember& member : members(part)) {
      Tensor& tensor = *member.tensor;
      if (tensor.device() == device) continue;
      Tensor moved = tensor.detach().to(device);
      if (tensor.requires_grad()) {
        moved.set_requires_grad();
        if (tensor.grad().defined()) moved.set_grad(tensor.grad().to(device));
      }
      tensor = moved;
    }
  for (const auto& [name, child] : children_) child->to(device);
}

void Module::train(bool training) {
  training_ = training;
  for (const auto& [name, child] : children_) child->train(training);
}

void Module::zero_grad() {
  for (const NamedMember& member : parameters_)
    if (member.tensor->requires_grad()) member.tensor->set_grad(Tensor());
  for (const auto& [name, child] : children_) child->zero_grad();
}

}  // namespace tandem
