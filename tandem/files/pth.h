// Weights as PyTorch saves them (torch.save of a state dict): the zip form and the legacy one before it. The
// pickle inside is read by a machine that calls nothing; a closed list of names is understood, and a pickle
// that would call any other is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/files/safetensors.h"

namespace tandem {

// The tensors of the state dict in its order, row-major, on the CPU. Views are followed into their storage.
// - Dtypes that Tandem lacks become wider ones: half → f32, bool → u8, int8 and int16 → i32.
// - A dictionary without tensors of its own is searched for the state dict under "state_dict",
//   "model_state_dict", "model" and "net", in this order and up to three levels deep.
// - "module." (DataParallel's) is taken off the names when all have it.
// - Metadata: "format" is "pth zip" or "pth legacy"; "ignored" names the entries that are no tensors.
// - All tensors together may take 64 MiB plus 16 times the file's size: shared and expanded storages are
//   written out.
TensorFile read_pth(const std::filesystem::path& path);
TensorFile parse_pth(std::string_view bytes, const std::string& name);

// A name in a file's pickles.
struct PthName {
  std::string name;         // "collections.OrderedDict"
  bool called = false;      // PyTorch would have called it
  bool understood = false;  // the name is on the closed list
};

// What the pickles would have imported or called, in order of appearance; nothing is.
std::vector<PthName> pth_names(std::string_view bytes, const std::string& name);

}  // namespace tandem
