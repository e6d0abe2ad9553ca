// Text style for an output stream.
#pragma once

#include <cstdio>

#include "tandem/text/table.h"

namespace tandem {

// Color on a terminal, unless NO_COLOR is set.
TextStyle terminal_style(std::FILE* file);

}  // namespace tandem
