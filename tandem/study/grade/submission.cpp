#include "tandem/study/grade/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"
#include "tandem/files/zip.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::array source_endings{".cpp", ".cc", ".cxx", ".c", ".cu", ".py", ".so"};

bool is_source(const fs::path& file) {
  return std::ranges::find(source_endings, file.extension().string()) != source_endings.end();
}

bool is_archive(const fs::path& file) {
  return file.extension() == ".zip";
}

// Not the student's work: hidden files, and what macOS and Python leave behind.
bool is_ignored(const fs::path& relative) {
  return std::ranges::any_of(relative, [](const fs::path& part) {
    return part.string().starts_with('.') || part == "__MACOSX" || part == "__pycache__";
  });
}

// The files of a submission by their path, '/'-separated and relative. A file is read when it is needed.
using Contents = std::map<std::string, std::string>;

class Collector {
 public:
  explicit Collector(std::string name) : name_(std::move(name)) {}

  // Throws Error when there are too many, before memory is taken for it.
  void announce(std::uint64_t bytes) {
    ++count_;
    bytes_ += bytes;
    check(count_ <= max_submission_files, "[submission] {}: has more than {} files", name_,
          max_submission_files);
    check(bytes_ <= max_submission_bytes, "[submission] {}: has more than {} MB", name_,
          max_submission_bytes >> 20);
  }

  void add(const std::string& path, std::string contents) { contents_[path] = std::move(contents); }
  Contents take() { return std::move(contents_); }

 private:
  std::string name_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
  Contents contents_;
};

// The path of an archive's entry; throws Error unless it stays inside.
std::string entry_path(std::string path, const std::string& archive) {
  std::ranges::replace(path, '\\', '/');
  const std::string shown = one_line(path);
  check(!path.starts_with('/') && !(path.size() > 1 && path[1] == ':'),
        "[submission] {}: '{}' is an absolute path", archive, shown);
  const fs::path parts(path);
  check(std::ranges::find(parts, fs::path("..")) == parts.end(),
        "[submission] {}: '{}' leads out of the archive", archive, shown);
  constexpr std::size_t max_name_bytes = 200;
  const bool is_name = shown == path && !path.empty() && std::ranges::all_of(parts, [](const fs::path& part) {
                         return part.string().size() <= max_name_bytes;
                       });
  check(is_name, "[submission] {}: '{}' is not a name for a file", archive, shorten(shown, 80));
  return parts.lexically_normal().generic_string();
}

Contents read_archive(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string bytes = read_file("submission", path, max_submission_bytes);
  check(is_zip(bytes) || !bytes.empty(), "[submission] {}: is empty", name);
  const std::vector<ZipEntry> entries = read_zip(bytes, name);
  check(entries.size() <= max_submission_files, "[submission] {}: has {} files, the limit is {}", name,
        entries.size(), max_submission_files);
  Collector all(name);
  for (const ZipEntry& entry : entries) {
    const std::string inside = entry_path(entry.name, name);
    check(!entry.link, "[submission] {}: '{}' is a link", name, inside);
    all.announce(entry.size);
    if (is_ignored(inside)) continue;
    std::string unpacked;
    all.add(inside, std::string(unpack_entry(entry, unpacked, name)));
  }
  return all.take();
}

Contents read_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  Collector all(name);
  std::error_code error;
  fs::recursive_directory_iterator files(folder, error);
  check(!error, "[submission] {}: {}", folder.string(), error.message());
  for (const fs::directory_entry& file : files) {
    const std::string relative = file.path().lexically_relative(folder).generic_string();
    if (is_ignored(relative)) {
      if (file.is_directory() && !file.is_symlink()) files.disable_recursion_pending();
      continue;
    }
    check(!file.is_symlink(), "[submission] {}: '{}' is a link", name, one_line(relative));
    if (file.is_directory()) continue;
    check(file.is_regular_file(), "[submission] {}: '{}' is not a regular file", name, one_line(relative));
    all.announce(file.file_size());
    all.add(relative, read_file("submission", file.path(), max_submission_bytes));
  }
  return all.take();
}

Contents read_contents_or_fail(const fs::path& path) {
  check(fs::exists(path), "[submission] {}: no such file or folder", path.string());
  Contents contents;
  if (fs::is_directory(path))
    contents = read_folder(path);
  else if (is_archive(path))
    contents = read_archive(path);
  else if (is_source(path))
    contents[path.filename().string()] = read_file("submission", path, max_submission_bytes);
  else
    fail("[submission] {}: expected a folder, a .zip file or a source file ({})", path.string(),
         fmt::join(source_endings, ", "));
  for (const auto& [file, bytes] : contents) {
    const auto inside = contents.lower_bound(file + "/");
    check(inside == contents.end() || !inside->first.starts_with(file + "/"),
          "[submission] {}: '{}' is a file and a folder", path.filename().string(), file);
  }
  check(std::ranges::any_of(contents, [](const auto& file) { return is_source(file.first); }),
        "[submission] {}: is empty: expected a source file ({})", path.filename().string(),
        fmt::join(source_endings, ", "));
  return contents;
}

Contents read_contents(const fs::path& path) {
  try {
    return read_contents_or_fail(path);
  } catch (const Error& error) {  // also of the archive
    throw SubmissionError(error.what());
  } catch (const fs::filesystem_error& error) {
    throw SubmissionError(fmt::format("[submission] {}: {}", path.string(), error.code().message()));
  }
}

std::string hash_of(const Contents& contents) {
  Sha256 hash;
  for (const auto& [path, bytes] : contents) {
    hash.update(fmt::format("{} {}\n", bytes.size(), path));
    hash.update(bytes);
  }
  return hash.hex_digest();
}

// The folder that is around everything: archives often have one. Empty when there is none.
std::string common_folder(const Contents& contents) {
  std::string common;
  for (const auto& [path, bytes] : contents) {
    const std::size_t slash = path.find('/');
    if (slash == std::string::npos) return {};
    const std::string first = path.substr(0, slash + 1);
    if (!common.empty() && first != common) return {};
    common = first;
  }
  return common;
}

fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

std::string submission_name(const fs::path& path) {
  const fs::path plain = fs::absolute(without_slash(path)).lexically_normal();
  return fs::is_directory(path) ? without_slash(plain).filename().string() : plain.stem().string();
}

std::string submission_hash(const fs::path& path) {
  return hash_of(read_contents(without_slash(path)));
}

Submission open_submission(const fs::path& given) {
  const fs::path path = without_slash(given);
  const Contents contents = read_contents(path);
  Submission submission{
      .name = submission_name(path), .hash = hash_of(contents), .copy = std::make_shared<ScratchFolder>()};
  submission.folder = submission.copy->path();
  constexpr fs::perms for_all = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                                fs::perms::others_read | fs::perms::others_exec;
  fs::permissions(submission.folder, for_all);
  const std::string around = common_folder(contents);
  for (const auto& [whole, bytes] : contents) {
    const std::string relative = whole.substr(around.size());
    fs::path folder = submission.folder;
    for (const fs::path& part : fs::path(relative).parent_path()) {
      folder /= part;
      fs::create_directory(folder);
      fs::permissions(folder, for_all);
    }
    const fs::path target = submission.folder / relative;
    write_file("submission", target, bytes);
    fs::permissions(target, for_all);
    submission.files.push_back(relative);
  }
  std::ranges::sort(submission.files);
  return submission;
}

std::optional<fs::path> part_file(const Submission& submission, const std::string& part) {
  std::vector<std::string> all;
  for (const std::string& file : submission.files)
    if (is_source(file)) all.push_back(file);
  const auto only = [&](const std::vector<std::string>& found) -> std::optional<fs::path> {
    check(found.size() <= 1, "[submission] {}: found {}: which one is meant for {}?", submission.name,
          fmt::join(found, " and "), part);
    return found.empty() ? std::nullopt : std::optional(submission.folder / found[0]);
  };
  for (const std::string& stem : {part, std::string("kernels")}) {
    std::vector<std::string> found;
    for (const std::string& file : all)
      if (fs::path(file).stem() == stem) found.push_back(file);
    if (!found.empty()) return only(found);
  }
  return all.size() == 1 ? only(all) : std::nullopt;
}

bool is_class_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  bool some = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_ignored(entry.path().filename())) continue;
    if (!entry.is_directory() && is_source(entry.path())) return false;
    some = some || entry.is_directory() || is_archive(entry.path());
  }
  return some;
}

std::vector<fs::path> submissions_in(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (is_ignored(path.filename()) || !(entry.is_directory() || is_archive(path) || is_source(path)))
      continue;
    const auto [other, added] = found.emplace(submission_name(path), path);
    check(added, "[submission] {} and {} have the same name", other->second.string(), path.string());
  }
  check(!found.empty(), "[submission] {}: has no folder, .zip file or source file", folder.string());
  std::vector<fs::path> all;
  for (const auto& [name, path] : found) all.push_back(path);
  return all;
}

}  // namespace tandem
