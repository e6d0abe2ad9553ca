// A shared library that is opened when one of its functions is first needed. The program starts without it
// and works on machines that do not have it.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"

namespace tandem {

class SharedLibrary {
 public:
  struct Options {
    std::string name;                            // for messages: "cuBLAS 13"
    std::vector<std::string> files;              // names to try: "libcublas.so.13"
    std::vector<std::filesystem::path> folders;  // searched after the paths of the dynamic linker
  };

  explicit SharedLibrary(Options options) : options_(std::move(options)) {}
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Whether one of the files is found. Does not open it: that takes half a second for cuBLAS.
  bool is_installed() const;

  // Whether it is installed and `find_functions` finds everything in it; false for another version.
  template <class F>
  bool provides(F&& find_functions) const {
    if (!is_installed()) return false;
    try {
      find_functions();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Why a function cannot be called, as a clause: "cuBLAS 13 is not installed (libcublas.so.13)".
  std::string missing() const;

  // The address of a function. Opens the library on the first call and never closes it. Throws Error when the
  // library or the function is missing. Thread-safe.
  template <class Function>
  Function function(const char* symbol) {
    return reinterpret_cast<Function>(address(symbol));
  }

 private:
  void* address(const char* symbol);
  void open();

  const Options options_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

}  // namespace tandem
