#include "tandem/files/checkpoint.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>

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

std::string frame_of(std::size_t payload_size, const std::string& digest) {
  return fmt::format("{}{}{:016x}{}", magic, version, payload_size, digest);
}

}  // namespace

PendingFile start_checkpoint_file(const std::filesystem::path& path, const TensorFile& file) {
  FileParts parts = safetensors_parts(file);
  parts.header_size += frame_size;
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
  check(!bytes.empty(), "[checkpoint] {}: the file is empty", name);
  const std::string_view begin = bytes.substr(0, magic.size());
  check(begin == magic.substr(0, begin.size()), "[checkpoint] {}: not a Tandem checkpoint", name);
  check(bytes.size() >= frame_size,
        "[checkpoint] {}: the file is truncated: expected at least {} bytes, got {}", name, frame_size,
        bytes.size());
  const std::string_view frame = bytes.substr(0, frame_size);
  const std::string_view found = frame.substr(magic.size(), version.size());
  check(found == version, "[checkpoint] {}: expected version {}, got {}", name, version, found);
  const std::string_view payload = bytes.substr(frame_size);
  const std::string expected = frame_of(payload.size(), sha256_hex(payload));
  const std::size_t digest_at = frame_size - digest_digits;
  if (frame.substr(0, digest_at) != std::string_view(expected).substr(0, digest_at)) {
    const std::string_view length = frame.substr(digest_at - length_digits, length_digits);
    const auto expected_size = parse_number<std::uint64_t>(length, 16);
    check(expected_size.has_value(), "[checkpoint] {}: the file is damaged: its length is not a number",
          name);
    fail("[checkpoint] {}: the file is truncated or damaged: expected {} bytes after the first {}, got {}",
         name, *expected_size, frame_size, payload.size());
  }
  check(frame == expected, "[checkpoint] {}: the content does not match its SHA-256: the file is damaged",
        name);
  return parse_safetensors(payload, name);
}

TensorFile read_checkpoint(const std::filesystem::path& path) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();
  return parse_checkpoint(read_file("checkpoint", path, no_limit), path.string());
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
  std::array<char, magic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == magic;
}

}  // namespace tandem
