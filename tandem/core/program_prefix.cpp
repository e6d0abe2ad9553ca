#include "tandem/core/program_prefix.h"

namespace tandem {

std::filesystem::path program_prefix() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
}

}  // namespace tandem
