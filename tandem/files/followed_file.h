// Follows a text file that another process appends to: every line is delivered once, when it is complete.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tandem {

// Keeps no file open and takes no lock. A line without its end waits for the rest. Lines above max_line bytes
// are dropped.
class FollowedFile {
 public:
  static constexpr std::size_t max_line = 1 << 16;

  explicit FollowedFile(std::filesystem::path path) : path_(std::move(path)) {}

  struct Poll {
    bool exists = false;   // as a regular file that can be read
    bool changed = false;  // lines were delivered, or the file was read anew
    bool more = false;     // the limit was reached before the end of the file
  };

  // Reads what was appended since the last call, at most about `max_bytes`. A file that was replaced by
  // another one, or became shorter, is read anew, after a call of on_restart. A missing file changes nothing.
  Poll poll(const std::function<void()>& on_restart, const std::function<void(std::string_view)>& on_line,
            std::int64_t max_bytes = 4 << 20);

  // Of the last change of the file, in seconds since 1970; 0 if it was never there.
  double modified_at() const { return static_cast<double>(seen_.modified.tv_sec); }

 private:
  struct Facts {
    std::int64_t size = -1;
    timespec modified{};
    ino_t number = 0;

    bool operator==(const Facts& other) const {
      return size == other.size && number == other.number && modified.tv_sec == other.modified.tv_sec &&
             modified.tv_nsec == other.modified.tv_nsec;
    }
  };

  bool continues(int file) const;
  void restart();
  bool take(std::string_view bytes, const std::function<void(std::string_view)>& on_line);

  std::filesystem::path path_;
  Facts seen_;                // at the last poll that reached the end
  std::int64_t offset_ = 0;   // bytes read
  std::string before_;        // the last bytes before the offset: another file has others
  std::string line_;          // begin of a line that is not complete
  bool is_dropping_ = false;  // that line is too long
};

}  // namespace tandem
