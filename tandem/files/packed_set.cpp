#include "tandem/files/packed_set.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tandem/core/check.h"
#include "tandem/files/crc32c.h"
#include "tandem/text/utf8.h"

namespace tandem {

struct PackedIndex::Entry {
  std::uint64_t offset, bytes;
  std::uint32_t crc, name_end;
};

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view magic = "TANDEMPK";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t alignment = 64, entry_bytes = 24;
constexpr std::uint64_t max_count = std::numeric_limits<std::int32_t>::max(), max_name = 4096;
constexpr std::uint64_t max_options = 1 << 20;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t crc;  // of this header with a crc of 0
  std::uint64_t file_bytes;
  std::uint64_t index_offset;
  std::uint64_t count;
  std::uint64_t names_bytes;
  std::uint64_t options_bytes;
  std::uint32_t index_crc;
  std::uint32_t unused;
};
static_assert(sizeof(Header) == alignment && std::is_trivially_copyable_v<Header>);

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::uint32_t crc_of(Header header) {
  header.crc = 0;
  return crc32c(bytes_of(header));
}

constexpr std::uint64_t rounded_up(std::uint64_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

// A path below a folder, without "", "." and ".." as a part of it.
bool is_valid_name(std::string_view name) {
  if (name.empty() || name.size() > max_name || name.find('\0') != name.npos) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

Header read_header(std::string_view file, const std::string& name) {
  check(is_packed_set(file), "[packed] {}: expected a set written by tandem pack, got something else", name);
  check(file.size() >= sizeof(Header), "[packed] {}: truncated: expected {} bytes or more, got {}", name,
        sizeof(Header), file.size());
  Header header{};
  std::memcpy(&header, file.data(), sizeof(header));
  check(header.version == version, "[packed] {}: expected version {}, got {}", name, version, header.version);
  check(header.crc == crc_of(header), "[packed] {}: the header is damaged", name);
  check(header.file_bytes == file.size(), "[packed] {}: expected {} bytes, as the header says, got {}", name,
        header.file_bytes, file.size());
  const bool index_fits = header.index_offset >= sizeof(Header) && header.index_offset <= file.size() &&
                          header.count >= 1 && header.count <= max_count;
  const std::uint64_t index = index_fits ? file.size() - header.index_offset : 0;
  check(index_fits && header.count <= index / entry_bytes &&
            header.names_bytes <= index - header.count * entry_bytes && header.options_bytes <= max_options &&
            header.options_bytes == index - header.count * entry_bytes - header.names_bytes,
        "[packed] {}: expected an index at the end, got one of {} files at byte {} of {}", name, header.count,
        header.index_offset, file.size());
  check(header.index_crc == crc32c(file.substr(header.index_offset)), "[packed] {}: the index is damaged",
        name);
  return header;
}

}  // namespace

bool is_packed_set(std::string_view bytes) {
  return bytes.starts_with(magic);
}

PackedIndex::PackedIndex(std::string_view file, const std::string& name) : file_(file) {
  static_assert(sizeof(Entry) == entry_bytes);
  const Header header = read_header(file, name);
  count_ = static_cast<std::int64_t>(header.count);
  entries_ = file.substr(header.index_offset, header.count * entry_bytes);
  names_ = file.substr(header.index_offset + entries_.size(), header.names_bytes);
  options_ = file.substr(header.index_offset + entries_.size() + names_.size());
  std::uint64_t end = sizeof(Header), name_end = 0;
  std::string_view last;
  for (std::int64_t i = 0; i < count_; ++i) {
    const Entry one = entry(i);
    check(one.offset == rounded_up(end) && one.offset <= header.index_offset &&
              one.bytes <= header.index_offset - one.offset,
          "[packed] {}: expected file {} at byte {}, got {} bytes at {}", name, i, rounded_up(end), one.bytes,
          one.offset);
    check(one.name_end > name_end && one.name_end <= names_.size(),
          "[packed] {}: expected a name of file {}, got one from byte {} to {} of {}", name, i, name_end,
          one.name_end, names_.size());
    const std::string_view own = names_.substr(name_end, one.name_end - name_end);
    check(is_valid_name(own) && last < own,
          "[packed] {}: expected sorted paths below a folder, got '{}' as the name of file {}", name,
          one_line(own.substr(0, max_name)), i);
    end = one.offset + one.bytes;
    name_end = one.name_end;
    last = own;
  }
  check(end == header.index_offset && name_end == names_.size(),
        "[packed] {}: expected the index after the last file, at byte {}, got it at {}", name, end,
        header.index_offset);
}

PackedIndex::Entry PackedIndex::entry(std::int64_t i) const {
  Entry one{};
  std::memcpy(&one, entries_.data() + static_cast<std::uint64_t>(i) * entry_bytes, entry_bytes);
  return one;
}

std::string_view PackedIndex::name(std::int64_t i) const {
  const std::uint32_t begin = i == 0 ? 0 : entry(i - 1).name_end;
  return names_.substr(begin, entry(i).name_end - begin);
}

std::string_view PackedIndex::bytes(std::int64_t i) const {
  const Entry one = entry(i);
  return file_.substr(one.offset, one.bytes);
}

bool PackedIndex::is_intact(std::int64_t i) const {
  return crc32c(bytes(i)) == entry(i).crc;
}

std::int64_t PackedIndex::lower_bound(std::string_view wanted) const {
  std::int64_t begin = 0, end = count_;
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    if (name(middle) < wanted)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

std::optional<std::int64_t> PackedIndex::find(std::string_view wanted) const {
  const std::int64_t i = lower_bound(wanted);
  return i < count_ && name(i) == wanted ? std::optional(i) : std::nullopt;
}

bool PackedIndex::has_folder(std::string_view folder) const {
  if (folder.empty()) return true;
  const std::string begin = std::string(folder) + '/';
  const std::int64_t i = lower_bound(begin);
  return i < count_ && name(i).starts_with(begin);
}

PackedIndex::Names PackedIndex::names_in(std::string_view folder) const {
  const std::string begin = folder.empty() ? "" : std::string(folder) + '/';
  Names found;
  for (std::int64_t i = lower_bound(begin); i < count_ && name(i).starts_with(begin);) {
    const std::string_view own = name(i).substr(begin.size());
    const std::size_t slash = own.find('/');
    if (slash == own.npos) {
      found.files.emplace_back(own);
      ++i;
    } else {
      found.folders.emplace_back(own.substr(0, slash));
      i = lower_bound(begin + found.folders.back() + char('/' + 1));  // behind the files of that folder
    }
  }
  return found;
}

PackedWriter::PackedWriter(const char* op, const std::filesystem::path& path) : op_(op), file_(op, path) {
  file_.append(std::string(sizeof(Header), '\0'));
  offset_ = sizeof(Header);
}

void PackedWriter::add(std::string_view name, std::string_view bytes) {
  check(is_valid_name(name), "[{}] expected a path of at most {} bytes below the folder, got '{}'", op_,
        max_name, one_line(name));
  expect(last_name_ < name);
  last_name_ = name;
  names_ += name;
  check(
      entries_.size() / entry_bytes < max_count && names_.size() <= std::numeric_limits<std::uint32_t>::max(),
      "[{}] expected at most {} files with names of 4 GiB in all, got more", op_, max_count);
  const std::uint64_t begin = rounded_up(offset_);
  file_.append(std::string(begin - offset_, '\0'));
  file_.append(bytes);
  offset_ = begin + bytes.size();
  for (const std::uint64_t value : {begin, static_cast<std::uint64_t>(bytes.size())})
    entries_ += bytes_of(value);
  for (const std::uint32_t value : {crc32c(bytes), static_cast<std::uint32_t>(names_.size())})
    entries_ += bytes_of(value);
}

void PackedWriter::finish(std::string_view options) {
  expect(!entries_.empty() && options.size() <= max_options);
  Header header{.version = version,
                .index_offset = offset_,
                .count = entries_.size() / entry_bytes,
                .names_bytes = names_.size(),
                .options_bytes = options.size()};
  std::memcpy(header.magic, magic.data(), magic.size());
  const std::string index = entries_ + names_ + std::string(options);
  offset_ += index.size();
  header.file_bytes = offset_;
  header.index_crc = crc32c(index);
  header.crc = crc_of(header);
  file_.append(index);
  file_.replace_begin(bytes_of(header));
  file_.finish();
}

}  // namespace tandem
