// A shared library that is opened when it is first needed, so that a program that never reads such a file
// does not load it, and runs on machines that do not have it. Internal to tandem/image.
#pragma once

#include <dlfcn.h>

namespace tandem {

class DynamicLibrary {
 public:
  // Stays open until the program ends: libraries with threads or exit handlers cannot be closed safely.
  explicit DynamicLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  // Whether the library and all functions asked for so far were found.
  bool complete() const { return handle_ != nullptr && complete_; }

  // Sets `function` to the one of that name.
  template <class F>
  void find(F*& function, const char* name) {
    void* const symbol = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    complete_ = complete_ && symbol != nullptr;
    function = reinterpret_cast<F*>(symbol);
  }

 private:
  void* handle_;
  bool complete_ = true;
};

}  // namespace tandem
