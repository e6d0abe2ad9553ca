// A plugin (tandem/plugin.h) that is loaded into this process, for good: what it registers refers to its
// code.
#pragma once

#include <filesystem>

namespace tandem {

class PluginLibrary {
 public:
  // Throws Error when the library cannot be loaded or was made for another version of the interface.
  explicit PluginLibrary(const std::filesystem::path& file);

  // Null when the plugin does not have the function.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  void* handle_ = nullptr;
};

}  // namespace tandem
