#include "tandem/files/checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"

namespace tandem {
namespace {

constexpr std::string_view magic = "TandemCheckpoint";
constexpr std::string_view version = "00000001";
constexpr std::size_t length_digits = 16;
constexpr std::size_t digest_digits = 64;
constexpr std::size_t frame_size = magic.size() + version.size() + length_digits + digest_digits;

std::string frame_of(std::string_view payload) {
  return fmt::format("{}{}{:016x}{}", magic, version, payload.size(), sha256_hex(payload));
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const TensorFile& file) {
  std::string bytes = to_safetensors(file);
  bytes.insert(0, frame_of(bytes));
  write_file("checkpoint", path, bytes);
}

TensorFile parse_checkpoint(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), "[checkpoint] {}: the file is empty", name);
  const std::string_view begin = bytes.substr(0, magic.size());
  check(begin == magic.substr(0, begin.size()), "[checkpoint] {}: not a checkpoint of Tandem", name);
  check(bytes.size() >= frame_size,
        "[checkpoint] {}: the file is cut short: expected at least {} bytes, got {}", name, frame_size,
        bytes.size());
  const std::string_view frame = bytes.substr(0, frame_size);
  const std::string_view found = frame.substr(magic.size(), version.size());
  check(found == version, "[checkpoint] {}: expected version {}, got {}", name, version, found);
  const std::string_view payload = bytes.substr(frame_size);
  const std::string expected = frame_of(payload);
  const std::size_t digest_at = frame_size - digest_digits;
  if (frame.substr(0, digest_at) != std::string_view(expected).substr(0, digest_at)) {
    const std::string_view length = frame.substr(digest_at - length_digits, length_digits);
    const bool hex =
        std::ranges::all_of(length, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    check(hex, "[checkpoint] {}: the file is damaged: its length is not a number", name);
    fail("[checkpoint] {}: the file is cut short or damaged: expected {} bytes after the first {}, got {}",
         name, std::stoull(std::string(length), nullptr, 16), frame_size, payload.size());
  }
  check(frame == expected, "[checkpoint] {}: the content does not match its SHA-256: the file is damaged",
        name);
  return parse_safetensors(payload, name);
}

TensorFile read_checkpoint(const std::filesystem::path& path) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();
  return parse_checkpoint(read_file("checkpoint", path, no_limit), path.string());
}

}  // namespace tandem
