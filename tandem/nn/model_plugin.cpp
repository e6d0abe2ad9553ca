#include "tandem/nn/model_plugin.h"

#include <fmt/format.h>

#include "tandem/core/build_info.h"
#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"

namespace tandem {

bool has_models(const PluginLibrary& plugin) {
  return plugin.find<void()>("tandem_register") != nullptr;
}

void load_models(const PluginLibrary& plugin, const std::filesystem::path& file) {
  auto* const headers_of = plugin.find<const char*()>("tandem_plugin_headers");
  check(headers_of != nullptr,
        "[plugin] {} has no function tandem_plugin_headers: expected a plugin that includes "
        "tandem/model_plugin.h",
        file.string());
  const std::string expected = fmt::format("{} {}", build_info().version, build_info().headers);
  const std::string headers = headers_of();
  check(headers == expected,
        "[plugin] {} was compiled with the headers of another Tandem ({}), this one has {}: compile it again",
        file.string(), headers, expected);
  const std::size_t before = models().rows().size();
  plugin.find<void()>("tandem_register")();
  check(models().rows().size() > before, "[plugin] {} registers no model in tandem_register()",
        file.string());
}

}  // namespace tandem
