// TensorBoard's event files: records (length, checksum, bytes, checksum) that each hold one protobuf message.
// Tandem writes scalars only. TensorBoard finds a file by "tfevents" in its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace tandem {

class EventFile {
 public:
  // Makes the file, or goes on with one that is there: what a killed run left half written at its end is cut
  // off, and so is everything from the first event of a later step than `last_step` on, because a resumed run
  // writes those again. A file that holds something else is an Error and stays as it is.
  explicit EventFile(const std::filesystem::path& path,
                     std::int64_t last_step = std::numeric_limits<std::int64_t>::max());

  // Writes through to the file; `wall_time` is in seconds since 1970.
  void scalar(std::string_view tag, std::int64_t step, double value, double wall_time);

 private:
  void append(std::string_view bytes);

  std::filesystem::path path_;
  std::ofstream file_;
};

// CRC-32C (Castagnoli), as iSCSI's.
std::uint32_t crc32c(std::string_view bytes);

// The record around a message, and the two messages.
std::string event_record(std::string_view message);
std::string version_event(double wall_time);
std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time);

}  // namespace tandem
