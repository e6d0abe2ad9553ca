// The time at which a run saves and stops by itself: one that was asked for, or shortly before a SLURM job
// ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tandem/dist/launch.h"

namespace tandem {

using SystemTime = std::chrono::system_clock::time_point;

// "18:30" is the next one, "2026-11-17T18:30" (or 18:30:00) local time, with Z at its end UTC; "+90" is 90
// minutes after `now`. Error for other text.
SystemTime parse_stop_time(const std::string& text, SystemTime now);
// Error also for a time that is not after `now`.
void check_stop_time(const std::string& text, SystemTime now);

inline constexpr std::int64_t max_stop_margin_s = 120;
// What saving may take of a job of so many seconds: a tenth, at most max_stop_margin_s.
std::int64_t stop_margin_s(std::int64_t job_seconds);

// The end of the SLURM job that `environment` describes (SLURM_JOB_END_TIME) less the margin. None where it
// does not, or the end has passed.
std::optional<SystemTime> job_stop_time(const Environment& environment, SystemTime now);

// "2026-11-17 18:30:00", local time.
std::string format_time(SystemTime time);

}  // namespace tandem
