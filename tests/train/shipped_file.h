// A folder with a file like the one that ships with Tandem: random weights of a ResNet-18 without its last
// layer, in bf16, biases and batch-norm statistics in f32. TANDEM_WEIGHTS names it.
#pragma once

#include <cstdlib>
#include <functional>

#include "tandem/files/safetensors.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/cast.h"
#include "tests/files/test_files.h"

namespace tandem {

inline TensorFile shipped_tensors(const std::string& model = "resnet18", std::uint64_t seed = 9) {
  TensorFile file{.metadata = {{"tandem.seed", std::to_string(seed)}}, .tensors = {}};
  for (const auto& [name, tensor] :
       make_model({.model = model, .channels = 3, .classes = 2}, seed)->state_dict())
    if (!name.starts_with("fc.") && !name.ends_with("num_batches_tracked"))
      file.tensors.push_back(
          {name, tensor.rank() > 1 ? cast(tensor.detach(), DType::bf16) : tensor.detach()});
  return file;
}

class ShippedFile {
 public:
  ShippedFile() { setenv("TANDEM_WEIGHTS", folder_.path().c_str(), 1); }
  ~ShippedFile() { unsetenv("TANDEM_WEIGHTS"); }
  ShippedFile(const ShippedFile&) = delete;
  ShippedFile& operator=(const ShippedFile&) = delete;

  void write(const TensorFile& file = shipped_tensors()) const { write_safetensors(path(), file); }
  std::filesystem::path path() const { return folder_ / "resnet18-scenes.safetensors"; }
  std::string folder() const { return folder_.path().string(); }

 private:
  TempFolder folder_;
};

}  // namespace tandem
