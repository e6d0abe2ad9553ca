#include "tandem/study/plugin/header_folders.h"

#include "tandem/core/program_prefix.h"

namespace tandem {

namespace fs = std::filesystem;

std::vector<fs::path> header_folders() {
  std::error_code error;
  const auto has = [&](const fs::path& folder, const char* header) {
    return fs::exists(folder / header, error);
  };
  const fs::path installed = program_prefix() / "include";
  if (has(installed, "tandem/tandem.h") && has(installed, "tandem/model_plugin.h")) return {installed};
  const fs::path sources = TANDEM_HEADER_FOLDER, written = TANDEM_WRITTEN_HEADER_FOLDER;
  if (has(sources, "tandem/tandem.h") && has(written, "tandem/model_plugin.h")) return {sources, written};
  return {};
}

}  // namespace tandem
