#include "apps/tandem/terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace tandem {

TextStyle terminal_style(std::FILE* file) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  return {.color = wanted && isatty(fileno(file)) != 0};
}

}  // namespace tandem
