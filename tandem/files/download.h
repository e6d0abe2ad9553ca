// Downloads a file over HTTPS or HTTP, resuming a partial download.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tandem {

struct DownloadOptions {
  std::uint64_t max_bytes = 0;  // a longer file is an Error
  int connect_timeout_s = 5;
  int stall_timeout_s = 15;  // at less than 100 bytes per second
  int timeout_s = 0;  // of the whole download; 0: time for `max_bytes` at 16 kB per second, and a minute
  // Called from time to time with the bytes so far and in total (0 if unknown).
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
};

// Writes partial_path(path), continuing an existing one, and renames it to `path` when it is complete. On
// failure throws an Error with libcurl's message and keeps the partial file for the next attempt. Only one
// process at a time may download to one path.
void download(const std::string& address, const std::filesystem::path& path, const DownloadOptions& options);

// PATH.part, the file of an incomplete download.
std::filesystem::path partial_path(const std::filesystem::path& path);

}  // namespace tandem
