#include "tandem/files/packed_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/decode_error.h"
#include "tandem/process/descriptor.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Changes when the file is replaced, written or cut.
struct FileVersion {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;

  bool operator==(const FileVersion&) const = default;
};

FileVersion version_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
}

class Mapping {
 public:
  Mapping(int file, std::size_t size) : size_(size) {
    void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool is_mapped() const { return data_ != nullptr; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_;
};

// Reads ahead what is about to be read in whole.
void will_need(std::string_view bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);  // NOLINT: an address
}

}  // namespace

class PackedSet {
 public:
  static std::shared_ptr<const PackedSet> open(const fs::path& path) {
    const auto require = [&](bool ok) {
      const int code = errno;
      check(ok, "[packed] {}: cannot be read: {}", path.string(), std::generic_category().message(code));
    };
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    require(file.get() >= 0);
    struct stat facts {};
    require(::fstat(file.get(), &facts) == 0);
    check(facts.st_size > 0, "[packed] {}: expected a set written by tandem pack, got an empty file",
          path.string());
    auto mapping = std::make_unique<const Mapping>(file.get(), static_cast<std::size_t>(facts.st_size));
    require(mapping->is_mapped());
    return std::shared_ptr<const PackedSet>(
        new PackedSet(version_of(facts), std::move(mapping), path.string()));
  }

  const FileVersion& version() const { return version_; }
  const PackedIndex& index() const { return index_; }

  // Whether the file has its checksum, which is computed once.
  bool is_intact(std::int64_t i) const {
    std::atomic<bool>& verified = verified_[static_cast<std::size_t>(i)];
    if (verified.load(std::memory_order_relaxed)) return true;
    will_need(index_.bytes(i));
    if (!index_.is_intact(i)) return false;
    verified.store(true, std::memory_order_relaxed);
    return true;
  }

 private:
  PackedSet(const FileVersion& version, std::unique_ptr<const Mapping> mapping, const std::string& name)
      : version_(version),
        mapping_(std::move(mapping)),
        index_(mapping_->bytes(), name),
        verified_(static_cast<std::size_t>(index_.count())) {}

  FileVersion version_;
  std::unique_ptr<const Mapping> mapping_;
  PackedIndex index_;
  mutable std::vector<std::atomic<bool>> verified_;
};

namespace {

// The sets that were opened last, the newest first.
class OpenSets {
 public:
  std::shared_ptr<const PackedSet> get(const std::string& path, const FileVersion& version) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(sets_, path, &Open::path);
    if (found != sets_.end() && found->set->version() == version) return found->set;
    if (found != sets_.end()) sets_.erase(found);
    sets_.insert(sets_.begin(), {path, PackedSet::open(path)});
    if (sets_.size() > max_sets) sets_.pop_back();
    return sets_.front().set;
  }

 private:
  struct Open {
    std::string path;
    std::shared_ptr<const PackedSet> set;
  };
  static constexpr std::size_t max_sets = 8;

  std::mutex mutex_;
  std::vector<Open> sets_;
};

OpenSets& open_sets() {
  static OpenSets sets;
  return sets;
}

// "train/cat" of "/train//./cat/".
std::string normalized(std::string_view inside) {
  std::string result;
  for (std::size_t begin = 0; begin < inside.size();) {
    const std::size_t end = std::min(inside.find('/', begin), inside.size());
    const std::string_view part = inside.substr(begin, end - begin);
    if (!part.empty() && part != ".") result += (result.empty() ? "" : "/") + std::string(part);
    begin = end + 1;
  }
  return result;
}

}  // namespace

const PackedIndex& PackedPath::index() const {
  return set->index();
}

std::optional<PackedPath> find_packed(const fs::path& path) {
  const std::string& text = path.native();
  for (std::size_t at = text.find(packed_set_ending); at != text.npos;
       at = text.find(packed_set_ending, at + 1)) {
    const std::size_t end = at + packed_set_ending.size();
    if (end < text.size() && text[end] != '/') continue;
    const std::string file = text.substr(0, end);
    struct stat facts {};
    if (::stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    return PackedPath{open_sets().get(file, version_of(facts)),
                      normalized(std::string_view(text).substr(end))};
  }
  return std::nullopt;
}

std::optional<PackedFile> open_packed_file(const char* op, const fs::path& path) {
  const std::optional<PackedPath> found = find_packed(path);
  if (!found || found->inside.empty()) return std::nullopt;
  const PackedIndex& index = found->index();
  const std::optional<std::int64_t> file = index.find(found->inside);
  check(file.has_value(), "[{}] {}: {}", op, path.string(),
        index.has_folder(found->inside) ? "expected a file, got a folder" : "no such file");
  if (!found->set->is_intact(*file))
    throw DecodeError(SkipKind::damaged,
                      fmt::format("[{}] {}: the bytes do not have their checksum", op, path.string()));
  return PackedFile{found->set, index.bytes(*file)};
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return true;
  const std::optional<PackedPath> found = find_packed(path);
  return found && found->index().has_folder(found->inside);
}

Image load_image_file(const fs::path& path, const LoadOptions& options) {
  const std::optional<PackedFile> packed = open_packed_file("decode", path);
  if (!packed) return load_image(path, options);
  return decode_image({reinterpret_cast<const std::uint8_t*>(packed->bytes.data()), packed->bytes.size()},
                      path.string(), options);
}

std::optional<std::uint64_t> bytes_in_file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error) return bytes;
  const std::optional<PackedPath> found = find_packed(path);
  const auto file = found ? found->index().find(found->inside) : std::nullopt;
  return file ? std::optional<std::uint64_t>(found->index().bytes(*file).size()) : std::nullopt;
}

}  // namespace tandem
