#include "tandem/core/plugin_library.h"

#include <dlfcn.h>

#include <string_view>

#include "tandem/core/check.h"
#include "tandem/plugin.h"

namespace tandem {

PluginLibrary::PluginLibrary(const std::filesystem::path& file)
    : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
  if (handle_ == nullptr) {
    const std::string_view reason = ::dlerror();
    const bool is_ours =
        reason.find("undefined symbol: _Z") != reason.npos && reason.find("6tandem") != reason.npos;
    fail("[plugin] {} cannot be loaded{}: {}", file.string(),
         is_ours ? " (it was made for another version of Tandem)" : "", reason);
  }
  auto* const version = find<int()>("tandem_plugin_version");
  check(version != nullptr, "[plugin] {} has no function tandem_plugin_version", file.string());
  const int number = version();
  constexpr int expected = TANDEM_PLUGIN_VERSION;
  check(number == expected, "[plugin] {} was made for version {} of the plugin interface, this is version {}",
        file.string(), number, expected);
}

void* PluginLibrary::address(const char* name) const {
  return ::dlsym(handle_, name);
}

}  // namespace tandem
