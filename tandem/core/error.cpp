#include "tandem/core/error.h"

#include <fmt/format.h>

namespace tandem {

void throw_internal_error(const SourceLocation& where) {
  throw InternalError(fmt::format("internal error in {} ({}:{}): this is a bug in Tandem, please report it",
                                  where.function, where.file, where.line));
}

}  // namespace tandem
