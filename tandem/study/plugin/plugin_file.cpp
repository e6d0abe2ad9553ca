#include "tandem/study/plugin/plugin_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/process/run_program.h"
#include "tandem/process/sandbox.h"
#include "tandem/study/plugin/embedded.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Language {
  std::string_view extension;
  const char* variable;  // of the environment, names another compiler
  std::string_view compiler;
  std::string_view flags;
};
constexpr std::string_view host_flags = "-O3 -march=native -fopenmp -fPIC -shared";
constexpr Language languages[] = {
    {".c", "CC", "cc", "-std=c17"},
    {".cpp", "CXX", "c++", "-std=c++20"},
    {".cc", "CXX", "c++", "-std=c++20"},
    {".cxx", "CXX", "c++", "-std=c++20"},
    {".cu", "NVCC", "nvcc", "-O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC,-fopenmp"}};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// nvcc is often installed, but not in PATH.
std::string default_compiler(const Language& language) {
  if (language.compiler == "nvcc")
    for (const char* path : {"/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"})
      if (!run_program({"nvcc", "--version"}, {}).empty() && fs::exists(path)) return path;
  return std::string(language.compiler);
}

std::vector<std::string> compiler_words(const Language& language, const fs::path& source,
                                        const std::vector<fs::path>& includes, const fs::path& library) {
  const char* chosen = std::getenv(language.variable);
  std::vector<std::string> words = words_of(chosen && *chosen ? chosen : default_compiler(language));
  for (const std::string& flag : words_of(std::string(language.flags))) words.push_back(flag);
  if (language.extension != ".cu")
    for (const std::string& flag : words_of(std::string(host_flags))) words.push_back(flag);
  for (const fs::path& include : includes) words.insert(words.end(), {"-I", include.string()});
  words.insert(words.end(), {source.string(), "-o", library.string()});
  return words;
}

// The folder that a program was installed in: /opt/gcc for /opt/gcc/bin/c++, wherever PATH finds it.
std::string installation_of(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(program.find('/') == std::string::npos && path ? path : "");
  fs::path found = program;
  std::error_code ignored;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / program, ignored)) {
      found = fs::path(folder) / program;
      break;
    }
  const fs::path real = fs::canonical(found, ignored);
  return (real.empty() ? fs::path("/usr") : real.parent_path().parent_path()).string();
}

// The compiler runs on code of somebody else, which can name any file.
std::vector<std::string> confined(const std::vector<std::string>& words, const std::string& program,
                                  const fs::path& source, const fs::path& scratch, const fs::path& out) {
  SandboxOptions sandbox{.allow_processes = true, .allow_files = false, .readable = system_paths()};
  sandbox.readable.push_back(source.parent_path().string());
  sandbox.readable.push_back(installation_of(words.front()));
  sandbox.readable.push_back(scratch.string());
  sandbox.writable = {out.string()};
  sandbox.memory_bytes = std::int64_t{8} << 30;
  sandbox.file_bytes = std::int64_t{256} << 20;
  sandbox.cpu_seconds = 120;
  std::vector<std::string> all{program, "confined"};
  for (const std::string& word : sandbox.to_words()) all.push_back(word);
  all.insert(all.end(), {"--", "env", "TMPDIR=" + out.string()});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// The first errors of a compiler, as one line.
std::string first_error(const std::string& output) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

void compile(PluginFile& plugin, const Language& language, const CompileOptions& options) {
  plugin.folder = std::make_shared<ScratchFolder>();
  const fs::path scratch = plugin.folder->path(), out = scratch / "out";
  fs::create_directories(scratch / "include/tandem");
  fs::create_directory(out);
  write_file("plugin", scratch / "include/tandem/plugin.h", embedded_plugin_header);
  plugin.library = out / (plugin.name + ".so");
  const fs::path source = fs::absolute(plugin.source);
  std::vector<fs::path> includes{scratch / "include"};
  if (language.extension != ".c")
    includes.insert(includes.end(), options.include_folders.begin(), options.include_folders.end());
  const std::vector<std::string> words = compiler_words(language, source, includes, plugin.library);
  plugin.command = fmt::format("{}", fmt::join(words, " "));
  if (options.on_command) options.on_command(plugin.command);
  std::vector<std::string> run = words;
  if (options.sandboxed) {
    ::chmod(scratch.c_str(), 0755);
    ::chmod(out.c_str(), 0777);
    run = confined(words, options.program.empty() ? "/proc/self/exe" : options.program, source, scratch, out);
  }
  std::string errors;
  const std::string problem = run_program(
      run, {.folder = {}, .timeout_s = options.timeout_s, .own_group = options.sandboxed, .errors = &errors});
  if (problem.empty() && fs::exists(plugin.library)) return;
  const std::string error = first_error(errors);
  const bool lacks_header =
      error.find("fatal error: ") != error.npos &&
      (error.find("tandem/model_plugin.h") != error.npos || error.find("tandem/tandem.h") != error.npos);
  check(!lacks_header,
        "[plugin] {} cannot be compiled: the headers of Tandem are not installed beside this program ({})",
        plugin.source.string(), shorten(one_line(error), 300));
  if (error.empty()) fail("[plugin] {} cannot be compiled: {}", plugin.source.string(), problem);
  fail("[plugin] {} cannot be compiled: {}", plugin.source.string(), shorten(one_line(error), 300));
}

}  // namespace

PluginFile prepare_plugin(const fs::path& source, const CompileOptions& options) {
  std::error_code ignored;
  check(fs::is_regular_file(source, ignored), "[plugin] expected a file, got '{}'", source.string());
  PluginFile plugin{.name = source.stem().string(), .source = source};
  const std::string extension = source.extension().string();
  if (extension == ".so" || extension == ".py") {
    plugin.library = fs::absolute(source);
    plugin.is_python = extension == ".py";
    return plugin;
  }
  for (const Language& language : languages)
    if (language.extension == extension) {
      compile(plugin, language, options);
      return plugin;
    }
  fail("[plugin] expected a file of type .so, .c, .cpp, .cu or .py, got '{}'", source.string());
}

}  // namespace tandem
