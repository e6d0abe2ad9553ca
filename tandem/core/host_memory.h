// Free host memory: of the machine, within the limits of this process's cgroups, and the minimum of both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tandem {

// MemAvailable of /proc/meminfo, or the size of the physical memory when there is no such file.
std::int64_t available_host_bytes();

// Bytes left before this process reaches the memory limit of a cgroup. Reclaimable page cache counts as free.
// Returns the maximum std::int64_t when there is no limit.
std::int64_t cgroup_free_bytes();
// The same for a given text of /proc/self/cgroup and a given root in place of /sys/fs/cgroup, for tests.
std::int64_t cgroup_free_bytes(const std::string& membership, const std::filesystem::path& root);

// Resident memory of this process; 0 if it is not known.
std::int64_t resident_bytes();

// Lets large blocks go back to the system when they are freed. Without it, malloc keeps more of them the more
// were freed. For programs that run for months.
void return_freed_memory();

// Overwrites memory when it is freed: a library that forgets to write some of its result cannot show what was
// there before.
void clear_freed_memory();

// The minimum of the two: how much this process can still allocate. Of processes that do the same at the same
// time, share_host_memory() tells how many they are: then it is one part of it.
std::int64_t free_host_bytes();
void share_host_memory(int processes);

}  // namespace tandem
