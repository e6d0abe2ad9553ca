#include "tandem/files/shipped_weights.h"

#include <fmt/ranges.h>

#include <cstdlib>

#include "tandem/core/check.h"
#include "tandem/core/program_prefix.h"
#include "tandem/text/utf8.h"

namespace tandem {

namespace fs = std::filesystem;

const Registry<ShippedWeights>& shipped_weights() {
  static const Registry<ShippedWeights> rows("weights",
                                             {{.name = "resnet18", .file = "resnet18-scenes.safetensors"}});
  return rows;
}

std::vector<fs::path> shipped_weights_folders() {
  const char* const named = std::getenv("TANDEM_WEIGHTS");
  if (named != nullptr && *named != '\0') return {named};
  return {program_prefix() / TANDEM_DATA_FOLDER / "tandem/weights", TANDEM_WEIGHTS_FOLDER};
}

fs::path find_shipped_weights(const std::string& model) {
  const ShippedWeights* const row = shipped_weights().find(model);
  check(row != nullptr, "[weights] expected a model whose weights ship with Tandem ({}), got {}",
        shipped_weights().list(), model);
  std::vector<std::string> folders;
  for (const fs::path& folder : shipped_weights_folders()) {
    std::error_code ignored;
    if (fs::exists(folder / row->file, ignored)) return folder / row->file;
    folders.push_back(one_line(folder.string()));
  }
  fail("[weights] expected {}, which ships with Tandem, in {}, found none", row->file,
       fmt::join(folders, " or "));
}

}  // namespace tandem
