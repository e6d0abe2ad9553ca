#include "tandem/study/plugin/new_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/study/plugin/embedded.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Names end up in file names and commands.
void check_name(const std::string& name) {
  const bool plain = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
                     name.size() <= 64 &&
                     std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  check(plain, "[new] expected a name of letters, digits and _, got '{}'", name);
}

std::string readme(const ProjectKind& kind, const std::string& name) {
  std::string commands;
  for (const std::string& command : project_commands(kind, name)) commands += command + "\n";
  return fmt::format(
      "# {0}\n\n{1}, written in {2}. Change `{0}{3}`, then run, in this folder:\n\n```sh\n{4}```\n\n"
      "A source is compiled on the spot and the command is shown; docs/plugins.md describes the interface.\n",
      name, kind.summary, kind.language, kind.extension, commands);
}

std::vector<std::string> study_commands(const std::string& file) {
  return {"tandem study max --quick --with " + file, "tandem study xxt --quick --with " + file,
          "tandem study correlation --quick --with " + file};
}

}  // namespace

const Registry<ProjectKind>& project_kinds() {
  static const Registry<ProjectKind> kinds(
      "kind of project",
      {{.name = "kernel",
        .summary = "Maximum, X·Xᵀ and correlation on the CPU",
        .source = embedded_example_cpp,
        .placeholder = "kernels",
        .extension = ".cpp",
        .language = "C++",
        .commands = study_commands("NAME.cpp")},
       {.name = "cuda-kernel",
        .summary = "Maximum, X·Xᵀ and correlation on the GPU",
        .source = embedded_example_cu,
        .placeholder = "kernels",
        .extension = ".cu",
        .language = "CUDA",
        .commands = study_commands("NAME.cu")},
       {.name = "python-kernel",
        .summary = "Maximum, X·Xᵀ and correlation with NumPy",
        .source = embedded_example_py,
        .placeholder = "kernels",
        .extension = ".py",
        .language = "Python",
        .commands = study_commands("NAME.py")},
       {.name = "augmentation",
        .summary = "An operation for recipes",
        .source = embedded_example_augmentation,
        .placeholder = "vignette",
        .extension = ".c",
        .language = "C",
        .commands =
            {"tandem augment digits --with NAME.c --augment \"NAME 0.2 0.8\" -o sheet.png",
             "tandem train digits --limit 2000 --with NAME.c --augment \"NAME 0.2 0.8, shift -2 2\""}},
       {.name = "model",
        .summary = "A network to train",
        .source = embedded_example_model,
        .placeholder = "residual",
        .extension = ".cpp",
        .language = "C++",
        .commands = {"tandem train digits --limit 2000 --with NAME.cpp --model NAME"}}});
  return kinds;
}

std::vector<std::string> project_commands(const ProjectKind& kind, const std::string& name) {
  std::vector<std::string> commands;
  for (const std::string& command : kind.commands) commands.push_back(replaced(command, "NAME", name));
  return commands;
}

std::vector<fs::path> write_project(const ProjectKind& kind, const std::string& name) {
  check_name(name);
  const fs::path folder = name;
  std::error_code error;
  check(!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder, error)),
        "[new] expected a new or empty folder, but {} is not", name);
  std::vector<std::pair<fs::path, std::string>> files{
      {folder / (name + kind.extension), replaced(std::string(kind.source), kind.placeholder, name)},
      {folder / "README.md", readme(kind, name)}};
  if (kind.extension != ".py")
    files.emplace_back(folder / "tandem/plugin.h", std::string(embedded_plugin_header));
  std::vector<fs::path> written;
  for (const auto& [path, text] : files) {
    fs::create_directories(path.parent_path(), error);
    check(!error, "[new] cannot create {}: {}", path.parent_path().string(), error.message());
    write_file("new", path, text);
    written.push_back(path);
  }
  return written;
}

}  // namespace tandem
