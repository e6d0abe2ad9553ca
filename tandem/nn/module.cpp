#include "tandem/nn/module.h"

#include "tandem/nn/copy_named.h"

namespace tandem {

void Module::add_parameter(std::string name, Tensor& parameter, Dims file_axes) {
  parameter.set_requires_grad();
  parameters_.push_back({std::move(name), &parameter, std::move(file_axes)});
}

void Module::add_buffer(std::string name, Tensor& buffer) {
  buffers_.push_back({std::move(name), &buffer, {}});
}

void Module::add_child(std::string name, Module& child) {
  child.train(training_);
  children_.emplace_back(std::move(name), &child);
}

void Module::collect(Part part, const std::string& prefix, bool for_state_dict, NamedTensors& into) const {
  for (const NamedMember& member : part == Part::parameters ? parameters_ : buffers_) {
    Tensor tensor = for_state_dict ? member.tensor->detach() : *member.tensor;
    if (for_state_dict && member.file_axes.rank() > 0) tensor = tensor.permute(member.file_axes);
    into.push_back({prefix + member.name, std::move(tensor)});
  }
  for (const auto& [name, child] : children_) child->collect(part, prefix + name + ".", for_state_dict, into);
}

NamedTensors Module::parameters() const {
  NamedTensors all;
  collect(Part::parameters, "", false, all);
  return all;
}

NamedTensors Module::buffers() const {
  NamedTensors all;
  collect(Part::buffers, "", false, all);
  return all;
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  for (const Part part : {Part::parameters, Part::buffers}) collect(part, "", true, all);
  return all;
}

void Module::load_state_dict(const NamedTensors& state) {
  copy_named("load_state_dict", state_dict(), state);
  invalidate_caches();
}

void Module::invalidate_caches() {
  ++revision_;
  for (const auto& [name, child] : children_) child->invalidate_caches();
}

void Module::freeze() {
  for (const NamedMember& member : parameters_) member.tensor->set_requires_grad(false);
  for (const auto& [name, child] : children_) child->freeze();
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
  ++revision_;
  for (const auto& [name, child] : children_) child->to(device);
}

void Module::train(bool training) {
  training_ = training;
  ++revision_;
  for (const auto& [name, child] : children_) child->train(training);
}

void Module::zero_grad() {
  for (const NamedMember& member : parameters_)
    if (member.tensor->requires_grad()) member.tensor->set_grad(Tensor());
  for (const auto& [name, child] : children_) child->zero_grad();
}

}  // namespace tandem
