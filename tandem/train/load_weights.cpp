#include "tandem/train/load_weights.h"

#include <map>
#include <string>

#include "tandem/core/check.h"
#include "tandem/files/weights.h"
#include "tandem/ops/cast.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

bool is_head(const std::string& name) {
  return name == "fc.weight" || name == "fc.bias";
}

// Only the number of classes may differ, not the number of features.
bool has_same_features(const Tensor& one, const Tensor& other) {
  return one.rank() == other.rank() && (one.rank() < 2 || one.size(1) == other.size(1));
}

}  // namespace

void load_weights(Module& model, const std::filesystem::path& path, bool keep_head) {
  const TensorFile file = read_weights(path);
  check_finite(file, path.string());
  std::map<std::string, Tensor> own;
  for (const auto& [name, tensor] : model.state_dict()) own.emplace(name, tensor);
  NamedTensors state;
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = own.find(name);
    Tensor value = tensor;
    if (found != own.end()) {
      const Tensor& present = found->second;
      if (is_head(name) && !keep_head && has_same_features(tensor, present))
        value = present;
      else if (tensor.shape() == present.shape() && is_floating(tensor.dtype()) &&
               is_floating(present.dtype()))
        value = cast(tensor, present.dtype());
      own.erase(found);
    }
    state.push_back({name, value});
  }
  for (const auto& [name, tensor] : own)
    if ((is_head(name) && !keep_head) || name.ends_with("num_batches_tracked"))
      state.push_back({name, tensor});
  try {
    model.load_state_dict(state);
  } catch (const Error& error) {
    fail("[train] {}: not the weights of this model: {}", one_line(path.string()), error.what());
  }
}

}  // namespace tandem
