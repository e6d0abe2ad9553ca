// Atomic writing of files that are larger than memory: as write_file(), but piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace tandem {

// The file has no name until finish(), where the file system can do that, so that nothing is left of a killed
// process; elsewhere it is a temporary file. Errors are those of write_file().
class StreamedFile {
 public:
  // Throws Error for a device or a pipe, too.
  StreamedFile(const char* op, const std::filesystem::path& path);
  ~StreamedFile();
  StreamedFile(StreamedFile&&) noexcept;
  StreamedFile& operator=(StreamedFile&&) noexcept;

  void append(std::string_view bytes);
  // Replaces the first bytes of what was appended: a header that depends on the rest.
  void replace_begin(std::string_view bytes);
  // Syncs the file and renames it into place. Nothing can be written afterwards.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
