// How text may look where it is going.
#pragma once

#include <cstdio>

#include "tandem/report/table.h"

namespace tandem {

// Colour on a terminal, unless NO_COLOR is set.
TextStyle terminal_style(std::FILE* file);

}  // namespace tandem
