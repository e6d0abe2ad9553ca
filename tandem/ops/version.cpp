#include "tandem/ops/version.h"

#include "tandem/core/check.h"
#include "tandem/ops/version_kernel.h"

namespace tandem {

Version parse_version(std::string_view name) {
  for (Version version : all_versions)
    if (name_of(version) == name) return version;
  fail("expected a version (reference, simd, parallel, cuda-simple or cuda), got '{}'", name);
}

void detail::check_version(const char* op, Version version, Device device) {
  check(backend_of(version) == device.backend, "[{}] expected a version that runs on {}, got {}", op,
        device.to_string(), name_of(version));
}

}  // namespace tandem
