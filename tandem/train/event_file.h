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
  // Creates the file or appends to an existing one. An incomplete record at the end, left by a killed run, is
  // cut off, as is everything from the first event with a step after `last_step`: a resumed run writes those
  // again. Throws Error for a file that is not an event file, and leaves it unchanged.
  explicit EventFile(const std::filesystem::path& path,
                     std::int64_t last_step = std::numeric_limits<std::int64_t>::max());

  // Appends and flushes; `wall_time` is in seconds since 1970.
  void scalar(std::string_view tag, std::int64_t step, double value, double wall_time);

 private:
  void append(std::string_view bytes);

  std::filesystem::path path_;
  std::ofstream file_;
};

// A message wrapped as a record, and the two kinds of message.
std::string event_record(std::string_view message);
std::string version_event(double wall_time);
std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time);

}  // namespace tandem
