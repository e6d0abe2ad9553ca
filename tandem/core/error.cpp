#include "tandem/core/error.h"

#include <fmt/format.h>

namespace tandem {

void throw_internal_error(const std::source_location& where) {
  throw InternalError(fmt::format("internal error in {} ({}:{}): this is a bug in Tandem, please report it",
                                  where.function_name(), where.file_name(), where.line()));
}

}  // namespace tandem
