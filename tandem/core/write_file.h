// Atomic file writes: a temporary file in the same folder is written, synced and renamed over the target, so
// a partial file is never visible under the final name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Replaces the contents of `path`. On failure throws Error ("[op] cannot write report.html: Permission
// denied") and leaves the old file and no temporary file. An existing file keeps its mode, symbolic links are
// followed, and a device or pipe (/dev/stdout) is written directly.
void write_file(const char* op, const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const char* op, const std::filesystem::path& path, std::string_view text);

// The contents of a file: a header that may depend on the body, such as its digest, and the body.
struct FileParts {
  std::size_t header_size = 0;
  std::function<std::string()> make_header;      // returns header_size bytes; called once, on any thread
  std::vector<std::span<const std::byte>> body;  // concatenated
  std::shared_ptr<const void> keep_alive;        // owns the memory of `body`

  std::string to_string() const;
};

// An asynchronous write_file(). A large file is written by background threads, its body while its header is
// computed; the bytes must not change until finish() returns. finish() waits for the write and renames the
// file into place; the file that is replaced stays under the name `previous`, unless that is empty. Without
// finish() the target is not touched and the temporary file is removed.
class PendingFile {
 public:
  PendingFile(const char* op, const std::filesystem::path& path, FileParts parts);
  ~PendingFile();
  PendingFile(PendingFile&&) noexcept;
  PendingFile& operator=(PendingFile&&) noexcept;

  void finish(const std::filesystem::path& previous = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Appends to a file and creates it if needed. For logs: the data is not synced to the disk.
void append_file(const char* op, const std::filesystem::path& path, std::string_view text);

// Syncs a file or folder to the disk: what was appended to the one, the names in the other. Errors are
// ignored: some file systems cannot do it.
void sync_path(const std::filesystem::path& path) noexcept;

// Throws the Error that write_file() would throw, as far as it can be known in advance. Call it before long
// work whose result is to be written.
void check_writable(const char* op, const std::filesystem::path& path);

}  // namespace tandem
