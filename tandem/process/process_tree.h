// The time that a process and all below it have computed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace tandem {

// In seconds, user and system, with processes that have ended and were waited for. nullopt if the process
// itself cannot be read; where the kernel does not tell children, those that run are not counted. `proc` is
// for tests.
std::optional<double> tree_cpu_seconds(pid_t process, const std::filesystem::path& proc = "/proc");

}  // namespace tandem
