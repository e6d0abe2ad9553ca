// The architecture rules. Each is a function from source files to a list of violations ("path:line:
// message"), empty when the rule holds. A room (a folder under tandem/, or apps/tandem) may include only its
// own files and rooms of a lower rank; the table below lists the ranks.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace tandem::architecture {

struct Room {
  std::string_view name;
  int rank;
};

inline constexpr std::array rooms{
    Room{"core", 0},    Room{"device", 1}, Room{"image", 1},       Room{"text", 1},  Room{"process", 1},
    Room{"tensor", 2},  Room{"report", 2}, Room{"ops", 3},         Room{"files", 3}, Room{"dist", 3},
    Room{"augment", 4}, Room{"nn", 4},     Room{"data", 5},        Room{"optim", 5}, Room{"train", 6},
    Room{"study", 7},   Room{"serve", 7},  Room{"apps/tandem", 8},
};
inline constexpr std::size_t max_lines = 600;

using Sources = std::vector<SourceFile>;
using Violations = std::vector<std::string>;

inline const Room* find_room(std::string_view name) {
  for (const auto& room : rooms)
    if (room.name == name) return &room;
  return nullptr;
}

inline std::string location(const SourceFile& file, std::size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

// The path, from the root, of a quoted include. "tandem/..." and "apps/..." are paths from the root already;
// others are relative to the including file.
inline std::string resolve(const SourceFile& file, const Include& include) {
  if (include.target.starts_with("tandem/") || include.target.starts_with("apps/")) return include.target;
  const auto relative = std::filesystem::path(file.path).parent_path() / include.target;
  return relative.lexically_normal().generic_string();
}

// tandem/nn.h lists the public headers of tandem/nn; tandem/tandem.h lists the umbrella headers.
inline bool is_umbrella(std::string_view path) {
  if (!path.starts_with("tandem/") || !path.ends_with(".h")) return false;
  const std::string_view name = path.substr(7, path.size() - 9);
  return name == "tandem" || find_room(name) != nullptr;
}

inline Violations unknown_rooms(const Sources& files) {
  Violations found;
  for (const auto& file : files)
    if (!is_umbrella(file.path) && !find_room(file.room()))
      found.push_back(file.path + ": is not in a known room");
  return found;
}

inline Violations rank_violations(const Sources& files) {
  Violations found;
  for (const auto& file : files) {
    const auto* own = find_room(file.room());
    if (!own) continue;  // reported by unknown_rooms()
    for (const auto& include : file.includes) {
      if (!include.quoted) {
        if (include.target.starts_with("tandem/"))
          found.push_back(location(file, include.line) + "<" + include.target + "> must be in quotes");
        continue;
      }
      if (file.in_library() && !include.target.starts_with("tandem/")) {
        found.push_back(location(file, include.line) + "\"" + include.target + "\" must start with tandem/");
        continue;
      }
      const auto room_name = SourceFile{.path = resolve(file, include), .code = {}, .includes = {}}.room();
      const auto* other = find_room(room_name);
      if (!other) {
        found.push_back(location(file, include.line) + "\"" + include.target + "\" is not in a known room");
      } else if (other != own && other->rank >= own->rank) {
        found.push_back(location(file, include.line) + std::string(own->name) + " (rank " +
                        std::to_string(own->rank) + ") includes " + std::string(other->name) + " (rank " +
                        std::to_string(other->rank) + ")");
      }
    }
  }
  return found;
}

inline Violations include_cycles(const Sources& files) {
  std::map<std::string, std::vector<std::string>> edges;
  for (const auto& file : files)
    for (const auto& include : file.includes)
      if (include.quoted) edges[file.path].push_back(resolve(file, include));
  Violations found;
  std::set<std::string> done;
  std::vector<std::string> stack;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    const auto first = std::ranges::find(stack, path);
    if (first != stack.end()) {
      std::string cycle;
      for (auto step = first; step != stack.end(); ++step) cycle += *step + " -> ";
      found.push_back("include cycle: " + cycle + path);
      return;
    }
    if (done.contains(path)) return;
    stack.push_back(path);
    if (const auto next = edges.find(path); next != edges.end())
      for (const auto& target : next->second) visit(target);
    stack.pop_back();
    done.insert(path);
  };
  for (const auto& file : files) visit(file.path);
  return found;
}

inline bool is_cuda_header(std::string_view target) {
  static constexpr std::string_view prefixes[] = {"cuda",
                                                  "cublas",
                                                  "cudnn",
                                                  "curand",
                                                  "nccl",
                                                  "nvrtc",
                                                  "nvml",
                                                  "cutlass",
                                                  "cub/",
                                                  "thrust/",
                                                  "mma.h",
                                                  "driver_types.h",
                                                  "cooperative_groups"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return target.starts_with(prefix); });
}

// CUDA headers are allowed only in files that a build without CUDA does not compile, and never in core.
inline Violations cuda_header_violations(const Sources& files) {
  Violations found;
  for (const auto& file : files) {
    const bool cuda_source = file.extension() == ".cu" || file.extension() == ".cuh" ||
                             (file.extension() == ".cpp" && file.stem().ends_with("_cuda"));
    const bool device_header = file.extension() == ".h" && file.path.starts_with("tandem/device/cuda");
    const bool allowed = file.room() != "core" && (cuda_source || device_header);
    for (const auto& include : file.includes)
      if (!allowed && is_cuda_header(include.target))
        found.push_back(location(file, include.line) + "CUDA header " + include.target +
                        " outside CUDA sources");
  }
  return found;
}

// Only `device` creates CUDA memory, streams and library handles. Nothing synchronizes the whole device.
inline Violations cuda_ownership_violations(const Sources& files) {
  static constexpr std::string_view device_only[] = {
      "cudaMalloc",   "cudaHostAlloc",  "cudaStreamCreate", "cudaEventCreate",
      "cublasCreate", "cublasLtCreate", "cudnnCreate",      "cudaMemPoolCreate"};
  Violations found;
  for (const auto& file : files) {
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      const auto& line = file.code[i];
      if (line.find("cudaDeviceSynchronize") != std::string::npos)
        found.push_back(location(file, i + 1) +
                        "cudaDeviceSynchronize waits for the whole device: synchronize a stream instead");
      if (file.room() == "device") continue;
      for (const auto call : device_only)
        if (line.find(call) != std::string::npos)
          found.push_back(location(file, i + 1) + std::string(call) + " belongs in tandem/device");
    }
  }
  return found;
}

// A source x.cpp needs a header x.h in its room, in any subfolder. A source of a family (x_cuda.cpp,
// x_simple.cu) may have the header of the family instead.
inline Violations sources_without_header(const Sources& files) {
  std::set<std::string> headers;
  for (const auto& file : files)
    if (file.extension() == ".h" || file.extension() == ".cuh")
      headers.insert(file.room() + "/" + file.stem());
  Violations found;
  for (const auto& file : files) {
    if (!file.in_library() || (file.extension() != ".cpp" && file.extension() != ".cu")) continue;
    auto stem = file.stem();
    while (!stem.empty() && !headers.contains(file.room() + "/" + stem)) {
      const auto cut = stem.rfind('_');
      stem.resize(cut == std::string::npos ? 0 : cut);
    }
    if (stem.empty()) found.push_back(file.path + ": has no header of the same name");
  }
  return found;
}

inline Violations headers_without_pragma_once(const Sources& files) {
  Violations found;
  for (const auto& file : files) {
    if (file.extension() != ".h" && file.extension() != ".cuh") continue;
    const bool once = std::ranges::any_of(file.code, [](const std::string& line) {
      const auto [name, rest] = directive(line);
      return name == "pragma" && rest.starts_with("once");
    });
    if (!once) found.push_back(file.path + ": has no #pragma once");
  }
  return found;
}

inline Violations long_files(const Sources& files) {
  Violations found;
  for (const auto& file : files)
    if (file.code.size() > max_lines)
      found.push_back(file.path + ": " + std::to_string(file.code.size()) + " lines, the maximum is " +
                      std::to_string(max_lines));
  return found;
}

// The public headers: what the umbrella headers list.
inline std::set<std::string> public_headers(const Sources& files) {
  std::set<std::string> all;
  for (const auto& file : files)
    if (is_umbrella(file.path))
      for (const auto& include : file.includes)
        if (include.quoted && !is_umbrella(include.target)) all.insert(include.target);
  return all;
}

// An umbrella header lists headers of its own room only, and tandem.h lists every umbrella header.
inline Violations umbrella_violations(const Sources& files) {
  Violations found;
  std::set<std::string> umbrellas, listed;
  for (const auto& file : files) {
    if (!is_umbrella(file.path)) continue;
    const bool is_root = file.path == "tandem/tandem.h";
    if (!is_root) umbrellas.insert(file.path);
    for (const auto& include : file.includes) {
      const std::string folder = file.path.substr(0, file.path.size() - 2) + "/";
      if (is_root) listed.insert(include.target);
      if (is_root ? !is_umbrella(include.target) : !include.target.starts_with(folder))
        found.push_back(location(file, include.line) + "lists " + include.target);
    }
  }
  for (const auto& umbrella : umbrellas)
    if (!listed.contains(umbrella)) found.push_back("tandem/tandem.h does not list " + umbrella);
  return found;
}

// A user sees the public headers and nothing else: they include public headers only. Nobody inside the
// library includes an umbrella header, which would make every edit rebuild everything.
inline Violations public_include_violations(const Sources& files) {
  const auto visible = public_headers(files);
  Violations found;
  for (const auto& file : files) {
    if (is_umbrella(file.path)) continue;
    for (const auto& include : file.includes) {
      if (!include.quoted) continue;
      if (visible.contains(file.path) && !visible.contains(include.target))
        found.push_back(location(file, include.line) + "a public header includes the internal " +
                        include.target);
      if (is_umbrella(include.target))
        found.push_back(location(file, include.line) + "includes the umbrella header " + include.target);
    }
  }
  return found;
}

inline bool is_kernel_header(const SourceFile& file) {
  return file.extension() == ".cuh" || (file.extension() == ".h" && file.stem().ends_with("_kernel"));
}

// Kernels, functors and layouts are internal: their headers are never public and declare in tandem::detail.
inline Violations kernel_namespace_violations(const Sources& files) {
  const auto visible = public_headers(files);
  Violations found;
  for (const auto& file : files) {
    if (!is_kernel_header(file)) continue;
    if (visible.contains(file.path)) found.push_back(file.path + ": a kernel header is public");
    for (std::size_t i = 0; i < file.code.size(); ++i)
      if (file.code[i].starts_with("namespace tandem") &&
          !file.code[i].starts_with("namespace tandem::detail"))
        found.push_back(location(file, i + 1) + "a kernel header must declare in tandem::detail");
  }
  return found;
}

inline Violations macros(const Sources& files) {
  Violations found;
  for (const auto& file : files)
    for (std::size_t i = 0; i < file.code.size(); ++i)
      if (directive(file.code[i]).name == "define")
        found.push_back(location(file, i + 1) + "defines a macro");
  return found;
}

}  // namespace tandem::architecture
