#include "tandem/train/load_weights.h"

#include <map>
#include <set>
#include <string>

#include "tandem/core/check.h"
#include "tandem/files/weights.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/ops/cast.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// The names of the last layer's parameters.
std::set<std::string> head_names(const Module& model) {
  const auto* const backbone = dynamic_cast<const BackboneModel*>(&model);
  if (!backbone) return {"fc.weight", "fc.bias"};
  std::set<std::string> names;
  for (const NamedTensor& parameter : backbone->parameters())
    if (backbone->is_head(parameter.name)) names.insert(parameter.name);
  return names;
}

// Counters of training steps: files from elsewhere need not have them.
bool is_counter(const NamedTensor& named) {
  return named.name.ends_with("num_batches_tracked") ||
         (named.name.ends_with(".step") && named.tensor.dtype() == DType::i64 && named.tensor.rank() == 0);
}

// Only the number of classes may differ, not the number of features.
bool has_same_features(const Tensor& one, const Tensor& other) {
  return one.rank() == other.rank() && (one.rank() < 2 || one.size(1) == other.size(1));
}

}  // namespace

void load_weights(Module& model, const std::filesystem::path& path, bool keep_head) {
  const TensorFile file = read_weights(path);
  check_finite(file, path.string());
  check(!file.metadata.contains("tandem.quantization"),
        "[train] {}: expected weights in floating point, got a model in 8-bit integers, which cannot be "
        "trained",
        one_line(path.string()));
  const std::set<std::string> head = head_names(model);
  std::map<std::string, Tensor> own;
  for (const auto& [name, tensor] : model.state_dict()) own.emplace(name, tensor);
  NamedTensors state;
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = own.find(name);
    Tensor value = tensor;
    if (found != own.end()) {
      const Tensor& present = found->second;
      if (head.contains(name) && !keep_head && has_same_features(tensor, present))
        value = present;
      else if (tensor.shape() == present.shape() && is_floating(tensor.dtype()) &&
               is_floating(present.dtype()))
        value = cast(tensor, present.dtype());
      own.erase(found);
    }
    state.push_back({name, value});
  }
  for (const auto& [name, tensor] : own)
    if ((head.contains(name) && !keep_head) || is_counter({name, tensor})) state.push_back({name, tensor});
  try {
    model.load_state_dict(state);
  } catch (const Error& error) {
    fail("[train] {}: not the weights of this model: {}", one_line(path.string()), error.what());
  }
}

}  // namespace tandem
