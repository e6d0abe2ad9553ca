#include "tandem/nn/module.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/nn/copy_named.h"
#include "tandem/tensor/tape.h"

namespace tandem {

void Module::check_new_name(const char* what, const std::string& name) const {
  const auto has_name = [&](const auto& list, auto name_of_item) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& item) { return name_of_item(item) == name; });
  };
  const auto member_name = [](const NamedMember& member) -> const std::string& { return member.name; };
  const bool taken = has_name(parameters_, member_name) || has_name(buffers_, member_name) ||
                     has_name(children_, [](const auto& child) -> const std::string& { return child.first; });
  check(!name.empty() && !taken, "[module] expected a new name for a {}, got '{}'", what, name);
}

void Module::add_parameter(std::string name, Tensor& parameter, Dims file_axes) {
  check_new_name("parameter", name);
  check(parameter.defined(), "[module] expected a tensor for the parameter '{}', got an undefined one", name);
  parameter.set_requires_grad();
  parameters_.push_back({std::move(name), &parameter, std::move(file_axes)});
}

void Module::add_buffer(std::string name, Tensor& buffer) {
  check_new_name("buffer", name);
  check(buffer.defined(), "[module] expected a tensor for the buffer '{}', got an undefined one", name);
  buffers_.push_back({std::move(name), &buffer, {}});
}

void Module::add_child(std::string name, Module& child) {
  check_new_name("child", name);
  check(&child != this, "[module] expected another module as the child '{}', got the module itself", name);
  child.train(training_);
  children_.emplace_back(std::move(name), &child);
}

void Module::add_children(std::initializer_list<NamedModule> children) {
  for (const NamedModule& child : children) add_child(child.name, child.module);
}

void Module::take_registrations(Module& from, std::initializer_list<Tensor*> tensors) noexcept {
  parameters_ = std::exchange(from.parameters_, {});
  buffers_ = std::exchange(from.buffers_, {});
  children_ = std::exchange(from.children_, {});
  training_ = from.training_;
  ++revision_;
  const auto* next = tensors.begin();
  for (std::vector<NamedMember>* const list : {&parameters_, &buffers_})
    for (NamedMember& member : *list) member.tensor = *next++;
}

void Module::mark_replaced(const Tensor& parameter) {
  if (parameter.node()) parameter.node()->replaced = true;
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

void Module::unfreeze() {
  for (const NamedMember& member : parameters_) member.tensor->set_requires_grad();
  ++revision_;
  for (const auto& [name, child] : children_) child->unfreeze();
}

Module& Module::to(Device device) {
  for (const Part part : {Part::parameters, Part::buffers})
    for (const NamedMember& member : members(part)) {
      Tensor& tensor = *member.tensor;
      if (tensor.device() == device) continue;
      Tensor moved = tensor.detach().to(device);
      if (part == Part::parameters) {
        moved.set_requires_grad();
        if (tensor.grad().defined()) moved.set_grad(tensor.grad().to(device));
        moved.set_requires_grad(tensor.requires_grad());
        mark_replaced(tensor);
      }
      tensor = moved;
    }
  ++revision_;
  for (const auto& [name, child] : children_) child->to(device);
  return *this;
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
