#include "tandem/core/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool exists_in(const fs::path& folder, const std::string& file) {
  std::error_code ignored;
  return !folder.empty() && fs::exists(folder / file, ignored);
}

bool in_environment_path(const std::string& file) {
  const char* value = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(":;"), rest.size());
    if (exists_in(rest.substr(0, end), file)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// The paths of all libraries in the system's folders, as ldconfig wrote them, separated by zero bytes.
const std::string& linker_cache() {
  static const std::string text = [] {
    std::ifstream file("/etc/ld.so.cache", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

bool in_linker_paths(const std::string& file) {
  if (in_environment_path(file)) return true;
  const std::string entry = "/" + file;
  if (linker_cache().find(entry.c_str(), 0, entry.size() + 1) != std::string::npos) return true;
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    if (exists_in(folder, file)) return true;
  return false;
}

}  // namespace

bool SharedLibrary::is_installed() const {
  for (const std::string& file : options_.files) {
    if (in_linker_paths(file)) return true;
    for (const fs::path& folder : options_.folders)
      if (exists_in(folder, file)) return true;
    if (void* loaded = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {  // by another part of the process
      ::dlclose(loaded);
      return true;
    }
  }
  return false;
}

std::string SharedLibrary::missing() const {
  return fmt::format("{} is not installed ({})", options_.name, fmt::join(options_.files, " or "));
}

void SharedLibrary::open() {
  std::string reason;
  for (const std::string& file : options_.files) {
    handle_ = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    for (auto folder = options_.folders.begin(); handle_ == nullptr && folder != options_.folders.end();
         ++folder)
      if (exists_in(*folder, file)) handle_ = ::dlopen((*folder / file).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* text = ::dlerror();
    if (reason.empty() && text != nullptr) reason = text;
  }
  check(is_installed(), "{}", missing());
  fail("{} cannot be opened: {}", options_.name, reason);
}

void* SharedLibrary::address(const char* symbol) {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) open();
  void* found = ::dlsym(handle_, symbol);
  check(found != nullptr, "{} has no function {}: expected another version", options_.name, symbol);
  return found;
}

}  // namespace tandem
