// Downloads a file over HTTPS or HTTP: resumed where it stopped, within a limit, whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tandem {

struct DownloadOptions {
  std::uint64_t limit = 0;  // more bytes than this are refused
  int connect_limit_s = 5;
  int stall_limit_s = 15;  // without data worth the name
  // Bytes so far and in all (0 when the server does not say), every now and then.
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
};

// Writes PATH.part, goes on with one that is there, and renames it to `path` when it is whole. On a failure
// the part stays for the next time and the Error says what the network said. One process at a time for one
// path.
void download(const std::string& address, const std::filesystem::path& path, const DownloadOptions& options);

// The file a download leaves until it is whole.
std::filesystem::path part_of(const std::filesystem::path& path);

}  // namespace tandem
