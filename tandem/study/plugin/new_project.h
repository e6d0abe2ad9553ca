// Writes a small project for a plugin: a source to start from, the header and what to do next.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/core/registry.h"

namespace tandem {

struct ProjectKind {
  std::string name;                   // "kernel"
  std::string summary;                // one line
  std::string_view source;            // the template
  std::string placeholder;            // what the project's name replaces in it
  std::string extension;              // of the source: ".cpp"
  std::string language;               // for the README: "C++"
  std::vector<std::string> commands;  // to try, with NAME for the name of the project
};

const Registry<ProjectKind>& project_kinds();

// The commands to try for a project of this name.
std::vector<std::string> project_commands(const ProjectKind& kind, const std::string& name);

// Writes the project into the folder `name`, which must not exist or be empty, and returns the files.
// Throws Error for a name that is not a plain word.
std::vector<std::filesystem::path> write_project(const ProjectKind& kind, const std::string& name);

}  // namespace tandem
