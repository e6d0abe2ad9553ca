#include "tandem/files/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tandem/core/check.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50;
constexpr std::uint32_t end64_magic = 0x06064b50, locator_magic = 0x07064b50;
constexpr std::size_t local_size = 30, central_size = 46, end_size = 22, locator_size = 20, end64_size = 56;
constexpr std::uint32_t in_zip64 = 0xFFFFFFFF;  // marks a value stored in the zip64 field
constexpr std::uint64_t max_unpacked_base = 64 << 20, max_unpacked_factor = 20;
constexpr std::size_t max_name_bytes = 1024;

// Fields of a header; its length is checked by the caller.
struct Fields {
  std::string_view bytes;

  std::uint64_t number(std::size_t at, std::size_t size) const {
    expect(at + size <= bytes.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return value;
  }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(std::size_t at) const { return number(at, 8); }
};

struct Directory {
  std::uint64_t begin = 0, size = 0, count = 0;
};

// An entry of the central directory.
struct DirectoryEntry {
  ZipEntry entry;
  std::uint64_t packed_size = 0, local_at = 0, end = 0;
  std::uint16_t flags = 0, method = 0;
};

class ZipReader {
 public:
  ZipReader(std::string_view archive, const std::string& name) : archive_(archive), name_(name) {}

  std::vector<ZipEntry> read() {
    const Directory directory = find_directory();
    std::vector<DirectoryEntry> listed = read_directory(directory);
    check_unpacked_size(listed);
    for (DirectoryEntry& one : listed) locate_data(one, directory.begin);
    check_overlaps(listed);
    for (const DirectoryEntry& one : listed) check_local_header(one);
    std::vector<ZipEntry> entries;
    std::set<std::string_view> names;
    for (const DirectoryEntry& one : listed)
      check(names.insert(one.entry.name).second, "[zip] {}: contains '{}' twice", name_, shown(one));
    for (DirectoryEntry& one : listed)
      if (!one.entry.name.ends_with('/')) entries.push_back(std::move(one.entry));
    return entries;
  }

 private:
  static std::string shown(const DirectoryEntry& one) { return one_line(one.entry.name); }

  // `size` bytes at `at`; throws Error if they exceed the archive.
  Fields fields(std::uint64_t at, std::uint64_t size, const char* what) const {
    check(at <= archive_.size() && size <= archive_.size() - at, "[zip] {}: truncated: no {} at byte {}",
          name_, what, at);
    return {archive_.substr(at, size)};
  }

  std::size_t find_end() const {
    constexpr std::size_t max_comment_bytes = 65535;
    check(archive_.size() >= end_size, "[zip] {}: not a zip archive, or truncated", name_);
    const std::size_t last = archive_.size() - end_size;
    for (std::size_t back = 0; back <= std::min(last, max_comment_bytes); ++back) {
      const Fields end{archive_.substr(last - back)};
      if (end.u32(0) == end_magic && end.u16(20) == back) return last - back;
    }
    fail("[zip] {}: not a zip archive, or truncated", name_);
  }

  Directory find_directory() const {
    const std::size_t end_at = find_end();
    const Fields end{archive_.substr(end_at)};
    Directory directory{end.u32(16), end.u32(12), end.u16(10)};
    std::uint64_t limit = end_at;
    bool one_disk = end.u16(4) == 0 && end.u16(6) == 0 && end.u16(8) == end.u16(10);
    if (end_at >= locator_size && Fields{archive_.substr(end_at - locator_size)}.u32(0) == locator_magic) {
      const Fields locator{archive_.substr(end_at - locator_size)};
      limit = locator.u64(8);
      const Fields end64 = fields(limit, end64_size, "zip64 record");
      check(end64.u32(0) == end64_magic, "[zip] {}: damaged: no zip64 record at its position", name_);
      one_disk = end64.u32(16) == 0 && end64.u32(20) == 0 && end64.u64(24) == end64.u64(32);
      directory = {end64.u64(48), end64.u64(40), end64.u64(32)};
    }
    check(one_disk, "[zip] {}: expected an archive in one part", name_);
    check(directory.begin <= limit && directory.size <= limit - directory.begin &&
              directory.count <= directory.size / central_size,
          "[zip] {}: damaged: a directory of {} entries in {} bytes at byte {}", name_, directory.count,
          directory.size, directory.begin);
    return directory;
  }

  // Replaces values that do not fit 32 bits by those of the zip64 field, which contains only these.
  void apply_zip64(std::string_view extra, std::initializer_list<std::uint64_t*> values) const {
    if (std::ranges::none_of(values, [](const std::uint64_t* value) { return *value == in_zip64; })) return;
    while (extra.size() >= 4) {
      const std::uint16_t kind = Fields{extra}.u16(0), size = Fields{extra}.u16(2);
      extra.remove_prefix(4);
      check(size <= extra.size(), "[zip] {}: damaged: an extra field is truncated", name_);
      if (kind == 1) {
        std::size_t at = 0;
        for (std::uint64_t* value : values) {
          if (*value != in_zip64) continue;
          check(at + 8 <= size, "[zip] {}: damaged: a zip64 field is truncated", name_);
          *value = Fields{extra}.u64(at);
          at += 8;
        }
        return;
      }
      extra.remove_prefix(size);
    }
  }

  std::vector<DirectoryEntry> read_directory(const Directory& directory) const {
    std::vector<DirectoryEntry> listed;
    std::uint64_t at = directory.begin;
    const std::uint64_t end = directory.begin + directory.size;
    for (std::uint64_t i = 0; i < directory.count; ++i) {
      const Fields header = fields(at, central_size, "directory entry");
      check(header.u32(0) == central_magic, "[zip] {}: damaged: entry {} of the directory has no signature",
            name_, i);
      const std::uint64_t name_size = header.u16(28), extra_size = header.u16(30);
      const std::uint64_t whole = central_size + name_size + extra_size + header.u16(32);
      check(at <= end && whole <= end - at, "[zip] {}: damaged: entry {} exceeds the directory", name_, i);
      check(name_size <= max_name_bytes, "[zip] {}: entry {} has a name of {} bytes, the limit is {}", name_,
            i, name_size, max_name_bytes);
      DirectoryEntry one{.entry = {.name = std::string(archive_.substr(at + central_size, name_size)),
                                   .size = header.u32(24),
                                   .crc = header.u32(16)},
                         .packed_size = header.u32(20),
                         .local_at = header.u32(42),
                         .flags = header.u16(8),
                         .method = header.u16(10)};
      apply_zip64(archive_.substr(at + central_size + name_size, extra_size),
                  {&one.entry.size, &one.packed_size, &one.local_at});
      constexpr std::uint16_t encrypted = 1 | 1 << 6 | 1 << 13;
      check((one.flags & encrypted) == 0, "[zip] {}: '{}' is encrypted", name_, shown(one));
      check(one.method == 0 || one.method == 8,
            "[zip] {}: '{}': expected a stored or deflated entry, got method {}", name_, shown(one),
            one.method);
      check(one.method == 8 || one.packed_size == one.entry.size,
            "[zip] {}: '{}' is stored, but its sizes {} and {} differ", name_, shown(one), one.entry.size,
            one.packed_size);
      one.entry.deflated = one.method == 8;
      constexpr std::uint32_t unix_type = 0170000, unix_link = 0120000;  // the mode is in the upper half
      one.entry.link = (header.u32(38) >> 16 & unix_type) == unix_link;
      listed.push_back(std::move(one));
      at += whole;
    }
    return listed;
  }

  void check_unpacked_size(const std::vector<DirectoryEntry>& listed) const {
    const std::uint64_t limit = max_unpacked_base + max_unpacked_factor * archive_.size();
    std::uint64_t left = limit;
    for (const DirectoryEntry& one : listed) {
      if (!one.entry.deflated) continue;
      check(one.entry.size <= left,
            "[zip] {}: '{}' would decompress to {} bytes, in total more than the limit of {}: a zip bomb?",
            name_, shown(one), one.entry.size, limit);
      left -= one.entry.size;
    }
  }

  // Finds the data after the local header.
  void locate_data(DirectoryEntry& one, std::uint64_t limit) const {
    check(one.local_at <= limit && local_size <= limit - one.local_at,
          "[zip] {}: '{}' lies outside the file, at byte {}", name_, shown(one), one.local_at);
    const Fields local = fields(one.local_at, local_size, "entry");
    const std::uint64_t name_size = local.u16(26), extra_size = local.u16(28);
    const std::uint64_t data_at = one.local_at + local_size + name_size + extra_size;
    check(data_at <= limit && one.packed_size <= limit - data_at,
          "[zip] {}: '{}' has {} bytes at byte {} and exceeds the file", name_, shown(one), one.packed_size,
          data_at);
    one.entry.packed = archive_.substr(data_at, one.packed_size);
    one.end = data_at + one.packed_size;
  }

  // The local header must agree with the directory. Of entries that do not overlap, so that no part of the
  // archive is read more than once.
  void check_local_header(const DirectoryEntry& one) const {
    const Fields local = fields(one.local_at, local_size, "entry");
    const std::uint64_t name_size = local.u16(26), extra_size = local.u16(28);
    std::uint64_t size = local.u32(22), packed_size = local.u32(18);
    apply_zip64(archive_.substr(one.local_at + local_size + name_size, extra_size), {&size, &packed_size});
    constexpr std::uint16_t has_descriptor = 1 << 3;  // sizes and CRC follow the data
    const bool deferred = (local.u16(6) & has_descriptor) != 0;
    const auto agrees = [&](std::uint64_t here, std::uint64_t listed) {
      return here == listed || (deferred && (here == 0 || here == in_zip64));
    };
    check(local.u32(0) == local_magic && local.u16(8) == one.method && local.u16(6) == one.flags &&
              archive_.substr(one.local_at + local_size, name_size) == one.entry.name &&
              agrees(size, one.entry.size) && agrees(packed_size, one.packed_size) &&
              agrees(local.u32(14), one.entry.crc),
          "[zip] {}: damaged: the local header of '{}' does not agree with the directory", name_, shown(one));
  }

  void check_overlaps(const std::vector<DirectoryEntry>& listed) const {
    std::vector<const DirectoryEntry*> order;
    for (const DirectoryEntry& one : listed) order.push_back(&one);
    std::ranges::sort(order, {}, &DirectoryEntry::local_at);
    for (std::size_t i = 1; i < order.size(); ++i)
      check(order[i - 1]->end <= order[i]->local_at, "[zip] {}: '{}' and '{}' overlap", name_,
            shown(*order[i - 1]), shown(*order[i]));
  }

  std::string_view archive_;
  const std::string& name_;
};

// Owns the memory of zlib.
struct Inflater {
  z_stream stream{};

  Inflater() { expect(inflateInit2(&stream, -MAX_WBITS) == Z_OK); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

// Whether the data decompresses to exactly the size of `to`.
bool inflate_into(std::string& to, std::string_view from) {
  constexpr std::size_t max_piece = std::numeric_limits<uInt>::max() / 2;
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::size_t given = 0, filled = 0;
  Bytef none = 0;  // zlib needs an address also for an empty output
  while (true) {
    const std::size_t in = std::min(from.size() - given, max_piece),
                      out = std::min(to.size() - filled, max_piece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data() + given));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = to.empty() ? &none : reinterpret_cast<Bytef*>(to.data() + filled);
    stream.avail_out = static_cast<uInt>(out);
    const int status = inflate(&stream, Z_NO_FLUSH);
    given += in - stream.avail_in;
    filled += out - stream.avail_out;
    if (status == Z_STREAM_END) return given == from.size() && filled == to.size();
    if (status != Z_OK || (in == stream.avail_in && out == stream.avail_out)) return false;
  }
}

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

bool is_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04");
}

std::vector<ZipEntry> read_zip(std::string_view archive, const std::string& name) {
  return ZipReader(archive, name).read();
}

std::string_view unpack_entry(const ZipEntry& entry, std::string& unpacked, const std::string& name) {
  std::string_view contents = entry.packed;
  if (entry.deflated) {
    unpacked.assign(entry.size, '\0');
    check(inflate_into(unpacked, entry.packed),
          "[zip] {}: '{}' is damaged: it does not decompress to {} bytes", name, one_line(entry.name),
          entry.size);
    contents = unpacked;
  }
  check(crc_of(contents) == entry.crc, "[zip] {}: '{}' is damaged: its CRC is wrong", name,
        one_line(entry.name));
  return contents;
}

}  // namespace tandem
