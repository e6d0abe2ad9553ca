#include "tandem/core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "tandem/core/check.h"

namespace tandem {

void detail::throw_error(fmt::string_view format, fmt::format_args args) {
  throw Error(fmt::vformat(format, args));
}

void throw_internal_error(const SourceLocation& where) {
  throw InternalError(fmt::format("internal error in {} ({}:{}): this is a bug in Tandem, please report it",
                                  where.function, where.file, where.line));
}

std::string errno_message(int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (error_number == EMFILE) reason += ": raise the limit (ulimit -n)";
  return reason;
}

}  // namespace tandem
