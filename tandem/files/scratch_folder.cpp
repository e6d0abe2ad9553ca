#include "tandem/files/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "tandem/core/check.h"

namespace tandem {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::error_code ignored;
  std::string pattern = (fs::temp_directory_path(ignored) / "tandem-XXXXXX").string();
  const bool created = ::mkdtemp(pattern.data()) != nullptr;
  const int code = errno;
  check(created, "[scratch_folder] cannot create a temporary folder {}: {}", pattern,
        std::generic_category().message(code));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tandem
