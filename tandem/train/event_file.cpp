// Protobuf by hand, because the messages have four fields. Field numbers are those of TensorFlow's
// event.proto and summary.proto.
#include "tandem/train/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/files/crc32c.h"

namespace tandem {
namespace {

// The format masks its checksums, because a CRC of data that itself contains CRCs detects errors poorly.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Word); ++i) bytes += static_cast<char>(word >> (8 * i) & 0xFF);
  return bytes;
}

template <class Word>
Word read_little_endian(std::string_view bytes) {
  Word word = 0;
  for (std::size_t i = sizeof(Word); i-- > 0;)
    word = static_cast<Word>(word << 8 | static_cast<unsigned char>(bytes[i]));
  return word;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string key(int field, Wire wire) {
  return varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

std::string bytes_field(int field, std::string_view bytes) {
  return key(field, Wire::bytes) + varint(bytes.size()) + std::string(bytes);
}

std::string wall_time_field(double wall_time) {
  return key(1, Wire::fixed64) + little_endian(std::bit_cast<std::uint64_t>(wall_time));
}

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// The step of an event; 0 if it has none.
std::int64_t step_of(std::string_view message) {
  std::int64_t step = 0;
  while (!message.empty()) {
    const std::uint64_t head = take_varint(message);
    std::uint64_t skip = 0;
    switch (static_cast<Wire>(head & 7)) {
      case Wire::varint:
        if (const std::uint64_t value = take_varint(message); head >> 3 == 2)
          step = static_cast<std::int64_t>(value);
        break;
      case Wire::fixed64:
        skip = 8;
        break;
      case Wire::bytes:
        skip = take_varint(message);
        break;
      case Wire::fixed32:
        skip = 4;
        break;
      default:
        return step;
    }
    message.remove_prefix(std::min<std::uint64_t>(skip, message.size()));
  }
  return step;
}

// The next record's message; nullopt if there is no complete record with valid checksums.
std::optional<std::string> read_record(std::istream& file) {
  constexpr std::uint64_t max_length = 1 << 20;  // far more than a scalar: longer records are not ours
  std::string head(12, '\0');
  if (!file.read(head.data(), 12)) return std::nullopt;
  const auto length = read_little_endian<std::uint64_t>(head);
  const auto head_crc = read_little_endian<std::uint32_t>(std::string_view(head).substr(8));
  if (head_crc != masked_crc(std::string_view(head).substr(0, 8)) || length > max_length) return std::nullopt;
  std::string message(static_cast<std::size_t>(length), '\0');
  std::string crc(4, '\0');
  if (!file.read(message.data(), static_cast<std::streamsize>(length)) || !file.read(crc.data(), 4))
    return std::nullopt;
  if (read_little_endian<std::uint32_t>(crc) != masked_crc(message)) return std::nullopt;
  return message;
}

struct ValidPrefix {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  bool is_zero = false;  // the file begins with zeros, which no record does
};

ValidPrefix find_valid_prefix(const std::filesystem::path& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "[events] cannot read {}: {}", path.string(), std::generic_category().message(errno));
  ValidPrefix prefix;
  std::array<char, 12> head{};
  prefix.is_zero = file.read(head.data(), head.size()) && head == std::array<char, 12>{};
  file.clear();
  file.seekg(0);
  while (const auto message = read_record(file)) {
    if (step_of(*message) > last_step) break;
    prefix.bytes += message->size() + 16;
    ++prefix.records;
  }
  return prefix;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string event_record(std::string_view message) {
  const std::string length = little_endian<std::uint64_t>(message.size());
  return length + little_endian(masked_crc(length)) + std::string(message) +
         little_endian(masked_crc(message));
}

std::string version_event(double wall_time) {
  return wall_time_field(wall_time) + bytes_field(3, "brain.Event:2");
}

std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time) {
  const std::string scalar = bytes_field(1, tag) + key(2, Wire::fixed32) +
                             little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  return wall_time_field(wall_time) + key(2, Wire::varint) + varint(static_cast<std::uint64_t>(step)) +
         bytes_field(5, bytes_field(1, scalar));
}

EventFile::EventFile(const std::filesystem::path& path, std::int64_t last_step) : path_(path) {
  std::error_code error;
  std::uint64_t records = 0;
  if (std::filesystem::exists(path, error)) {
    const ValidPrefix prefix = find_valid_prefix(path, last_step);
    // A run killed during its first write leaves less than one record, a power failure perhaps zeros.
    const std::uint64_t size = std::filesystem::file_size(path, error);
    check(prefix.records > 0 || size < event_record(version_event(0)).size() || prefix.is_zero,
          "[events] expected TensorBoard events in {}, got something else", path.string());
    if (prefix.bytes != size) std::filesystem::resize_file(path, prefix.bytes, error);
    check(!error, "[events] cannot write {}: {}", path.string(), error.message());
    records = prefix.records;
  }
  file_.open(path, std::ios::binary | std::ios::app);
  check(file_.good(), "[events] cannot write {}: {}", path.string(), std::generic_category().message(errno));
  if (records > 0) return;
  append(event_record(version_event(now())));
}

void EventFile::scalar(std::string_view tag, std::int64_t step, double value, double wall_time) {
  append(event_record(scalar_event(tag, step, value, wall_time)));
}

void EventFile::append(std::string_view bytes) {
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file_.flush();
  check(file_.good(), "[events] cannot write {}: {}", path_.string(), std::generic_category().message(errno));
}

}  // namespace tandem
