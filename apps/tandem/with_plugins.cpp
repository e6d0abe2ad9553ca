#include "apps/tandem/with_plugins.h"

#include <fmt/ranges.h>

#include "tandem/study/plugin/header_folders.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tandem/text/message.h"
#include "tandem/train/load_plugin.h"

namespace tandem {

void load_plugins(const std::vector<std::string>& files) {
  static std::vector<PluginFile> loaded;  // process workers load them as well, as long as this process lives
  for (const std::string& file : files) {
    loaded.push_back(prepare_plugin(
        file, {.include_folders = header_folders(),
               .on_command = [](const std::string& command) { print_message("{}\n", command); }}));
    check(!loaded.back().is_python, "[plugin] expected a file of type .so, .c or .cpp, got '{}'", file);
    load_plugin(loaded.back().library);
  }
}

void add_with_flag(CLI::App& command, const std::string& help,
                   const std::function<void(const std::string& files)>& on_files) {
  command
      .add_option_function<std::vector<std::string>>(
          "--with",
          [on_files](const std::vector<std::string>& files) {
            load_plugins(files);
            if (on_files) on_files(fmt::format("{}", fmt::join(files, ",")));
          },
          help)
      ->type_name("FILES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->trigger_on_parse();
}

}  // namespace tandem
