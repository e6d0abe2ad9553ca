#include "tandem/ops/version.h"

#include "tandem/core/check.h"

namespace tandem {

Version parse_version(std::string_view name) {
  for (Version version : all_versions)
    if (name_of(version) == name) return version;
  fail("expected a version out of reference, parallel, cuda-simple, cuda, got '{}'", name);
}

void check_version(const char* op, Version version, Device device) {
  check(backend_of(version) == device.backend, "[{}] version {} does not run on {}", op, name_of(version),
        device.to_string());
}

}  // namespace tandem
