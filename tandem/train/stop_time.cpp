#include "tandem/train/stop_time.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::system_clock;

constexpr std::int64_t max_minutes = 100 * 366 * 24 * 60;

std::tm local_time(SystemTime time) {
  const std::time_t count = system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&count, &parts);
  return parts;
}

// The whole of `text` in that format, as parts that are not normalized.
std::optional<std::tm> parts_of(const std::string& text, const char* format) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), format, &parts);
  if (end == nullptr || end != text.c_str() + text.size()) return std::nullopt;
  parts.tm_isdst = -1;  // by the date
  return parts;
}

// None for a date that does not exist, and for one in a far future that the clock may not count.
std::optional<SystemTime> time_of(const std::tm& given, bool is_utc) {
  std::tm parts = given;
  const std::time_t count = is_utc ? ::timegm(&parts) : std::mktime(&parts);
  constexpr std::time_t max_count = std::time_t{60} * max_minutes * 2;
  if (parts.tm_mday != given.tm_mday || parts.tm_mon != given.tm_mon || count < -max_count ||
      count > max_count)
    return std::nullopt;
  return system_clock::from_time_t(count);
}

std::optional<SystemTime> time_of_day(const std::string& text, SystemTime now) {
  const auto given = parts_of(text, "%H:%M");
  if (!given) return std::nullopt;
  std::tm parts = local_time(now);
  parts.tm_hour = given->tm_hour;
  parts.tm_min = given->tm_min;
  parts.tm_sec = 0;
  parts.tm_isdst = -1;
  std::tm today = parts;
  const SystemTime time = system_clock::from_time_t(std::mktime(&today));
  if (time > now) return time;
  parts.tm_mday += 1;  // normalized by mktime()
  return system_clock::from_time_t(std::mktime(&parts));
}

std::optional<SystemTime> date_and_time(const std::string& text) {
  const bool is_utc = text.ends_with('Z');
  const std::string local = is_utc ? text.substr(0, text.size() - 1) : text;
  for (const char* const format : {"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"})
    if (const auto parts = parts_of(local, format)) return time_of(*parts, is_utc);
  return std::nullopt;
}

std::optional<SystemTime> minutes_from(const std::string& text, SystemTime now) {
  if (!text.starts_with('+')) return std::nullopt;
  const auto count = parse_number<std::int64_t>(std::string_view(text).substr(1));
  if (!count || *count < 1 || *count > max_minutes) return std::nullopt;
  return now + minutes(*count);
}

}  // namespace

SystemTime parse_stop_time(const std::string& text, SystemTime now) {
  auto time = minutes_from(text, now);
  if (!time) time = time_of_day(text, now);
  if (!time) time = date_and_time(text);
  check(time.has_value(), "expected a time such as 18:30, 2026-11-17T18:30 or +90 (minutes), got '{}'", text);
  return *time;
}

void check_stop_time(const std::string& text, SystemTime now) {
  check(parse_stop_time(text, now) > now, "expected a time in the future, got '{}': it is {}", text,
        format_time(now));
}

std::int64_t stop_margin_s(std::int64_t job_seconds) {
  return std::min(job_seconds / 10, max_stop_margin_s);
}

std::optional<SystemTime> job_stop_time(const Environment& environment, SystemTime now) {
  const auto found = environment.find("SLURM_JOB_END_TIME");
  if (found == environment.end()) return std::nullopt;
  const auto end = parse_number<std::int64_t>(found->second);
  const std::int64_t started = system_clock::to_time_t(now);
  // A job without a limit ends in the far future.
  if (!end || *end <= started || *end > started + 60 * max_minutes) return std::nullopt;
  return system_clock::from_time_t(*end - stop_margin_s(*end - started));
}

std::string format_time(SystemTime time) {
  const std::tm parts = local_time(time);
  char text[32] = {};
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace tandem
