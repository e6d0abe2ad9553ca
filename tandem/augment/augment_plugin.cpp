#include "tandem/augment/augment_plugin.h"

#include <algorithm>

#include "tandem/augment/own_operation_table.h"
#include "tandem/core/check.h"
#include "tandem/plugin.h"

namespace tandem {
namespace {

using Apply = decltype(tandem_augment);

void call_plugin(Apply* apply, const std::string& name, const AugmentCall& call) {
  TandemAugmentCall plain{};
  plain.in = call.in;
  plain.out = call.out;
  plain.height = call.size.height;
  plain.width = call.size.width;
  plain.channels = call.size.channels;
  std::ranges::copy(call.arguments, plain.arguments);
  std::ranges::copy(call.random, plain.random);
  const int status = apply(&plain);
  check(status == 0, "[augment] {} returned {} for an image of {}x{} with {} channel{}", name, status,
        call.size.width, call.size.height, call.size.channels, call.size.channels == 1 ? "" : "s");
}

}  // namespace

bool has_augmentation(const PluginLibrary& plugin) {
  return plugin.find<Apply>("tandem_augment") != nullptr;
}

void load_augmentation(const std::filesystem::path& library) {
  const PluginLibrary plugin(library);
  const std::string file = library.string();
  Apply* const apply = plugin.find<Apply>("tandem_augment");
  auto* const name_of = plugin.find<decltype(tandem_augment_name)>("tandem_augment_name");
  auto* const count_of = plugin.find<decltype(tandem_augment_arguments)>("tandem_augment_arguments");
  auto* const help_of = plugin.find<decltype(tandem_augment_help)>("tandem_augment_help");
  check(apply != nullptr, "[plugin] {} has no function tandem_augment", file);
  check(name_of != nullptr, "[plugin] {} has no function tandem_augment_name", file);
  check(count_of != nullptr, "[plugin] {} has no function tandem_augment_arguments", file);
  check(file.find('\n') == file.npos, "[plugin] expected a file name of one line");  // for worker processes
  const char* const given = name_of();
  const std::string name = given ? given : "";
  const char* const help = help_of ? help_of() : nullptr;
  detail::add_own_operation(
      {.name = name,
       .summary = help ? help : "an operation of a plugin",
       .arguments = count_of(),
       .apply = [apply, name](const AugmentCall& call) { call_plugin(apply, name, call); }},
      library);
}

}  // namespace tandem
