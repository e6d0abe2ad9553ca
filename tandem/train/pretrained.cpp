#include "tandem/train/pretrained.h"

#include <map>
#include <string>

#include "tandem/core/check.h"
#include "tandem/files/weights.h"
#include "tandem/ops/cast.h"
#include "tandem/text/utf8.h"

namespace tandem {

bool load_weights(Module& model, const std::filesystem::path& path) {
  const TensorFile file = read_weights(path);
  check_finite(file, path.string());
  std::map<std::string, Tensor> own;
  for (const auto& [name, tensor] : model.state_dict()) own.emplace(name, tensor);
  NamedTensors state;
  bool new_head = false;
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = own.find(name);
    Tensor value = tensor;
    if (found != own.end()) {
      const bool head = name == "fc.weight" || name == "fc.bias";
      const bool fits = tensor.shape() == found->second.shape();
      if (fits && is_floating(tensor.dtype()) && is_floating(found->second.dtype()))
        value = cast(tensor, found->second.dtype());
      // Only the number of classes may differ, not the number of features.
      const bool features = tensor.rank() < 2 || (found->second.rank() == tensor.rank() &&
                                                  tensor.size(1) == found->second.size(1));
      if (head && !fits && features) {
        value = found->second;
        new_head = true;
      }
      own.erase(found);
    }
    state.push_back({name, value});
  }
  for (const auto& [name, tensor] : own) {
    const bool head = name == "fc.weight" || name == "fc.bias";
    new_head = new_head || head;
    if (head || name.ends_with("num_batches_tracked")) state.push_back({name, tensor});
  }
  try {
    model.load_state_dict(state);
  } catch (const Error& error) {
    fail("[train] {}: not the weights of this model: {}", one_line(path.string()), error.what());
  }
  return new_head;
}

}  // namespace tandem
