// Writes a whole file or none: beside its place, to the disk, then renamed into it.
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

// Replaces `path` by a file of those bytes, or throws "[op] cannot write report.html: Permission denied" and
// leaves what was there and nothing else. An existing file keeps its mode, a link keeps pointing where it
// did; a device or pipe (/dev/stdout) is written directly.
void write_file(const char* op, const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const char* op, const std::filesystem::path& path, std::string_view text);

// What a file is made of: a head that may tell of all that follows, such as its digest, and the body.
struct FileParts {
  std::size_t head_size = 0;
  std::function<std::string()> make_head;        // of that size; called once, in any thread
  std::vector<std::span<const std::byte>> body;  // piece after piece
  std::shared_ptr<const void> memory;            // keeps what the pieces point to

  std::string to_string() const;
};

// write_file() in two steps. A large file is written by threads of its own, its body while its head is made;
// the bytes must not change meanwhile. finish() waits, has it on the disk and renames it into place; a file
// that is not finished leaves nothing.
class PendingFile {
 public:
  PendingFile(const char* op, const std::filesystem::path& path, FileParts parts);
  ~PendingFile();
  PendingFile(PendingFile&&) noexcept;
  PendingFile& operator=(PendingFile&&) noexcept;

  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Adds to the end of a file, which is made where there is none. For logs: the disk may have it later.
void append_file(const char* op, const std::filesystem::path& path, std::string_view text);

// Throws the Error that write_file() would throw for what can be told beforehand: to be called before
// minutes of work whose result could not be kept.
void check_writable(const char* op, const std::filesystem::path& path);

}  // namespace tandem
