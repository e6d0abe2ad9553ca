// PyTorch weight files (torch.save of a state dict), in the zip format and the legacy format before it.
// Nothing in the pickle is executed: a closed list of names is interpreted, and a pickle that has any other
// is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/files/safetensors.h"

namespace tandem {

/// The tensors of the state dict in its order, contiguous, on the CPU. Throws Error for an invalid file and
/// for a pickle that imports or calls anything else.
/// - Dtypes that Tandem lacks are widened: half → f32, bool → u8, int8 and int16 → i32.
/// - If the top dictionary has no tensors, the state dict is searched for under "state_dict",
/// "model_state_dict",
///   "model" and "net", in this order and up to three levels deep.
/// - The prefix "module." of DataParallel is removed when all names have it.
/// - Metadata: "format" is "pth zip" or "pth legacy"; "ignored" lists the entries that are not tensors.
/// - The tensors may take 64 MiB plus 16 times the size of the file: shared and expanded storages are copied
/// for
///   every tensor.
TensorFile read_pth(const std::filesystem::path& path);
/// The same for bytes in memory; `name` is the file name in error messages.
TensorFile parse_pth(std::string_view bytes, const std::string& name);

/// A name in the pickles of a file.
struct PthName {
  std::string name;         ///< "collections.OrderedDict"
  bool called = false;      ///< Python would call it
  bool understood = false;  ///< on the closed list
};

/// The names that the file could make Python import or call, in order of appearance, wherever they stand: in
/// every member of an archive, in pickles one after the other, in damaged ones up to the damage and after it.
/// Throws Error for a file without names that is no pickle.
std::vector<PthName> pth_names(std::string_view bytes, const std::string& name);

}  // namespace tandem
