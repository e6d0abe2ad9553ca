// A plugin as a file that can be loaded: a shared library, made from source if necessary, or a Python module.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/files/scratch_folder.h"

namespace tandem {

struct PluginFile {
  std::string name;               // of its rows: the file's name without extension
  std::filesystem::path source;   // as given by the user
  std::filesystem::path library;  // what is loaded: a shared library or a Python file; absolute
  std::string command;            // that compiled it; empty for .so and .py
  bool is_python = false;
  std::shared_ptr<ScratchFolder> folder;  // of the library; null when the user's own file is loaded
};

struct CompileOptions {
  bool sandboxed = false;  // the compiler reads only its own files and the source's folder
  std::string program;     // that confines the compiler; empty: this program
  int timeout_s = 120;
  // Where the headers of Tandem are, for plugins that use them; plugin.h is found without.
  std::vector<std::filesystem::path> include_folders = {};
  std::function<void(const std::string& command)> on_command = {};  // called before the compiler
};

// Takes .so as it is, compiles .c, .cpp, .cc, .cxx and .cu, and takes .py as it is. Throws Error for anything
// else, for a missing file, for a compiler that is not installed, and, with its first lines, for what a
// compiler reports.
PluginFile prepare_plugin(const std::filesystem::path& source, const CompileOptions& options = {});

}  // namespace tandem
