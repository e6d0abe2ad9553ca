#include "tandem/files/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors_parts.h"
#include "tandem/files/sha256.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

constexpr std::string_view magic = "TandemCheckpoint";
constexpr std::string_view version = "00000001";
constexpr std::size_t length_digits = 16;
constexpr std::size_t digest_digits = 64;
constexpr std::size_t frame_size = magic.size() + version.size() + length_digits + digest_digits;

std::string frame_of(std::uint64_t payload_size, const std::string& digest) {
  return fmt::format("{}{}{:016x}{}", magic, version, payload_size, digest);
}

// All that the first bytes tell of a file of this size.
void check_frame(std::string_view bytes, std::uint64_t file_size, const std::string& name) {
  check(!bytes.empty(), "[checkpoint] {}: the file is empty", name);
  const std::string_view begin = bytes.substr(0, magic.size());
  check(begin == magic.substr(0, begin.size()), "[checkpoint] {}: not a Tandem checkpoint", name);
  check(bytes.size() >= frame_size,
        "[checkpoint] {}: the file is truncated: expected at least {} bytes, got {}", name, frame_size,
        bytes.size());
  const std::string_view found = bytes.substr(magic.size(), version.size());
  check(found == version, "[checkpoint] {}: expected version {}, got {}", name, version, found);
  const std::uint64_t payload_size = file_size - frame_size;
  const std::string_view length = bytes.substr(magic.size() + version.size(), length_digits);
  if (length == fmt::format("{:016x}", payload_size)) return;
  const auto expected_size = parse_number<std::uint64_t>(length, 16);
  check(expected_size.has_value(), "[checkpoint] {}: the file is damaged: its length is not a number", name);
  fail("[checkpoint] {}: the file is truncated or damaged: expected {} bytes after the first {}, got {}",
       name, *expected_size, frame_size, payload_size);
}

// Fewer than `count` if the file is shorter or cannot be read.
std::string first_bytes(const std::filesystem::path& path, std::size_t count) {
  std::string bytes(count, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

PendingFile start_checkpoint_file(const std::filesystem::path& path, const TensorFile& file) {
  FileParts parts = safetensors_parts(file);
  parts.header_size += frame_size;
  std::uint64_t file_size = parts.header_size;
  for (const std::span<const std::byte> piece : parts.body) file_size += piece.size();
  check(file_size <= max_checkpoint_bytes, "[checkpoint] {}: expected at most {} bytes to write, got {}",
        path.string(), max_checkpoint_bytes, file_size);
  parts.make_header = [make_header = std::move(parts.make_header), body = parts.body] {
    const std::string head = make_header();
    std::size_t size = head.size();
    Sha256 hash;
    hash.update(head);
    for (const std::span<const std::byte> piece : body) {
      hash.update(piece);
      size += piece.size();
    }
    return frame_of(size, hash.hex_digest()) + head;
  };
  return {"checkpoint", path, std::move(parts)};
}

void write_checkpoint(const std::filesystem::path& path, const TensorFile& file) {
  start_checkpoint_file(path, file).finish();
}

TensorFile parse_checkpoint(std::string_view bytes, const std::string& name) {
  check_frame(bytes, bytes.size(), name);
  const std::string_view payload = bytes.substr(frame_size);
  check(bytes.substr(0, frame_size) == frame_of(payload.size(), sha256_hex(payload)),
        "[checkpoint] {}: the content does not match its SHA-256: the file is damaged", name);
  return parse_safetensors(payload, name);
}

TensorFile read_checkpoint(const std::filesystem::path& path) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size <= max_checkpoint_bytes) {
    // Before memory for the whole file is taken.
    const std::string begin = first_bytes(path, frame_size);
    if (begin.size() == std::min<std::uint64_t>(size, frame_size)) check_frame(begin, size, path.string());
  }
  return parse_checkpoint(read_file("checkpoint", path, max_checkpoint_bytes), path.string());
}

std::optional<NewestCheckpoint> read_newest_checkpoint(const std::filesystem::path& path,
                                                       const std::filesystem::path& previous) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const bool has_previous = std::filesystem::exists(previous, ignored);
  if (!exists && !has_previous) return std::nullopt;
  try {
    return NewestCheckpoint{.file = read_checkpoint(path), .problem = {}};
  } catch (const Error& error) {
    if (!has_previous) throw;
    try {
      return NewestCheckpoint{.file = read_checkpoint(previous), .problem = error.what()};
    } catch (const Error&) {
    }
    throw;
  }
}

bool is_checkpoint(const std::filesystem::path& path) {
  return first_bytes(path, magic.size()) == magic;
}

}  // namespace tandem
