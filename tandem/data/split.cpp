#include "tandem/data/split.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/data/image_folder.h"
#include "tandem/files/read_file.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) {
  return one_line(path.string());
}

constexpr const char* not_copied = "not-copied.csv";
constexpr const char* staging_name = ".tandem-split.tmp";

// The temporary folder that holds the files until all of them are written. One that a killed process left is
// removed.
class Staging {
 public:
  explicit Staging(const fs::path& target) : target_(target) {
    std::error_code error, ignored;
    created_target_ = fs::create_directories(target, error);
    fs::remove_all(path(), ignored);
    if (!error) fs::create_directory(path(), error);
    if (error && created_target_) fs::remove(target_, ignored);
    check(!error, "[split] cannot make the folder {}: {}", shown(target), error.message());
  }
  ~Staging() {
    std::error_code ignored;
    if (done_) {
      fs::remove(path(), ignored);  // it is empty
      return;
    }
    fs::remove_all(path(), ignored);
    for (const char* part : parts) fs::remove_all(target_ / part, ignored);
    if (created_target_) fs::remove(target_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  fs::path path() const { return target_ / staging_name; }

  // Syncs to disk, then renames.
  void finish() {
    const int folder = ::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      const int failed = ::syncfs(folder);
      const int code = errno;
      ::close(folder);
      const bool is_lost = failed != 0 && (code == EIO || code == ENOSPC || code == EDQUOT);
      check(!is_lost, "[split] cannot write {}: {}", shown(target_), std::generic_category().message(code));
    }
    std::error_code ignored;
    for (const char* part : parts) {
      if (part == not_copied && !fs::exists(path() / part, ignored)) continue;
      std::error_code error;
      fs::rename(path() / part, target_ / part, error);
      check(!error, "[split] cannot make {}: {}", shown(target_ / part), error.message());
    }
    sync_path(target_);
    done_ = true;
  }

 private:
  // train comes last: without it the folder is no data set, so that a part is not taken for the whole.
  static constexpr std::array<const char*, 3> parts{not_copied, "val", "train"};

  fs::path target_;
  bool created_target_ = false;
  bool done_ = false;
};

void check_paths(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::path source = fs::canonical(from, error), target = fs::weakly_canonical(to, error);
  const auto [rest, ignored] = std::mismatch(source.begin(), source.end(), target.begin(), target.end());
  check(rest != source.end(), "[split] expected a folder outside {} to write to, got {}", shown(from),
        shown(to));
  const fs::file_status status = fs::status(to, error);
  check(!fs::exists(status) || fs::is_directory(status), "[split] {}: expected a folder, got a file",
        shown(to));
  const auto is_content = [](const fs::directory_entry& entry) {
    return entry.path().filename() != staging_name;
  };
  const fs::directory_iterator entries(to, error);
  const bool empty = std::none_of(begin(entries), end(entries), is_content);
  check(empty, "[split] {} is not empty: expected a new or empty folder to write to", shown(to));
}

// All files are synced together, by Staging.
void copy_bytes(const fs::path& from, const fs::path& to) {
  constexpr std::uint64_t max_image_bytes = std::uint64_t{4} << 30;
  const std::string bytes = read_file("split", from, max_image_bytes);
  std::ofstream file(to, std::ios::binary);
  file.write(bytes.data(), std::ssize(bytes));
  file.close();  // a full disk may be reported only here
  const int code = errno;
  check(file.good(), "[split] cannot copy {}: {}", shown(from), std::generic_category().message(code));
}

void copy_or_link(const fs::path& from, const fs::path& to, bool link) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  check(!error, "[split] cannot make the folder {}: {}", shown(to.parent_path()), error.message());
  if (!link) return copy_bytes(from, to);
  const fs::path original = fs::canonical(from, error);
  if (!error) fs::create_symlink(original, to, error);
  check(!error, "[split] cannot link to {}: {}", shown(from), error.message());
}

}  // namespace

SplitCounts split_folder(const fs::path& from, const fs::path& to, const SplitOptions& options) {
  check(options.every >= 2, "[split] expected to hold out one file in 2 or more, got one in {}",
        options.every);
  const ImageFolder folder = scan_image_folder(from);
  check_paths(from, to);
  std::vector<std::size_t> images(folder.classes.size());
  for (const std::int32_t label : folder.labels) ++images[static_cast<std::size_t>(label)];
  for (std::size_t i = 0; i < images.size(); ++i)
    check(images[i] >= 2,
          "[split] {}: class '{}' has one image only: expected one for training and one for validation",
          shown(from), one_line(folder.classes[i]));

  Staging staging(to);
  SplitCounts counts{.classes = folder.classes.size(), .skipped = folder.skipped};
  if (!folder.skipped.empty()) write_file("split", staging.path() / not_copied, skipped_csv(folder.skipped));
  std::int64_t index = 0;  // within the class
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    if (i > 0 && folder.labels[i] != folder.labels[i - 1]) index = 0;
    const bool val = index++ % options.every == 0;
    const fs::path inside = folder.files[i].lexically_relative(from);  // CLASS/…/NAME
    copy_or_link(folder.files[i], staging.path() / (val ? "val" : "train") / inside, options.link);
    ++(val ? counts.val : counts.train);
  }
  staging.finish();
  return counts;
}

}  // namespace tandem
