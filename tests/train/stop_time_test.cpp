#include "tandem/train/stop_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "tandem/core/error.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

SystemTime at(std::int64_t seconds) {
  return std::chrono::system_clock::from_time_t(seconds);
}

// In a time zone with daylight saving, whatever that of the machine.
class StopTime : public testing::Test {
 protected:
  StopTime() {
    if (const char* const zone = std::getenv("TZ")) before_ = zone;
    set("CET-1CEST,M3.5.0,M10.5.0/3");
  }
  ~StopTime() override { set(before_ ? before_->c_str() : nullptr); }

  static constexpr std::int64_t now_s = 1794902400;  // 2026-11-17 08:00:00 UTC, 09:00 here
  const SystemTime now_ = at(now_s);

 private:
  static void set(const char* zone) {
    zone ? ::setenv("TZ", zone, 1) : ::unsetenv("TZ");
    ::tzset();
  }
  std::optional<std::string> before_;
};

TEST_F(StopTime, Minutes_CountFromNow) {
  EXPECT_EQ(parse_stop_time("+90", now_), now_ + 90min);
  EXPECT_EQ(parse_stop_time("+1", now_), now_ + 1min);
}

TEST_F(StopTime, TimeOfDay_IsTheNextOne) {
  EXPECT_EQ(parse_stop_time("18:30", now_), now_ + 9h + 30min);
  EXPECT_EQ(parse_stop_time("09:01", now_), now_ + 1min);
  EXPECT_EQ(parse_stop_time("09:00", now_), now_ + 24h);
  EXPECT_EQ(parse_stop_time("08:59", now_), now_ + 24h - 1min);
  // 2026-10-24 20:00 UTC is 22:00 in summer time; 21:00 of the next day is 23 + 1 hours later.
  EXPECT_EQ(parse_stop_time("21:00", at(1792872000)), at(1792872000) + 24h);
}

TEST_F(StopTime, DateAndTime_AreLocalUnlessUtc) {
  EXPECT_EQ(parse_stop_time("2026-11-17T18:30", now_), now_ + 9h + 30min);
  EXPECT_EQ(parse_stop_time("2026-11-17T18:30:05", now_), now_ + 9h + 30min + 5s);
  EXPECT_EQ(parse_stop_time("2026-11-17T18:30Z", now_), now_ + 10h + 30min);
  EXPECT_EQ(parse_stop_time("2027-07-01T12:00", at(1814428800) - 1h), at(1814428800) + 2h);  // summer time
}

TEST_F(StopTime, PastTime_IsRefusedByTheCheck) {
  for (const char* text : {"2026-11-17T09:00", "2026-11-17T08:00:00Z", "1999-12-31T23:59"}) {
    EXPECT_LE(parse_stop_time(text, now_), now_) << text;
    try {
      check_stop_time(text, now_);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "expected a time in the future, got '" + std::string(text) + "': it is 2026-11-17 09:00:00");
    }
  }
  EXPECT_NO_THROW(check_stop_time("2026-11-17T08:00:01Z", now_));
}

TEST_F(StopTime, OtherText_IsRefused) {
  for (const char* text : {"", "+", "+0", "+-5", "+1.5", "90", "25:00", "12:60", "12:30:15", "noon",
                           "2026-11-17", "2027-02-30T10:00", "2027-13-01T10:00", "2027-01-01 10:00",
                           "+99999999999", "18:30 ", "2642-11-17T18:30:05Z"})
    EXPECT_THROW(parse_stop_time(text, now_), Error) << text;
}

TEST_F(StopTime, Job_StopsBeforeItsEnd) {
  const auto stop = [&](const std::string& end) {
    return job_stop_time({{"SLURM_JOB_END_TIME", end}}, now_);
  };
  EXPECT_EQ(stop(std::to_string(now_s + 4 * 3600)), now_ + 4h - 2min);
  EXPECT_EQ(stop(std::to_string(now_s + 600)), now_ + 9min);  // a tenth of what is left
  EXPECT_EQ(stop(std::to_string(now_s)), std::nullopt);
  EXPECT_EQ(stop(std::to_string(now_s - 5)), std::nullopt);
  EXPECT_EQ(stop("soon"), std::nullopt);
  EXPECT_EQ(stop("99999999999999"), std::nullopt);
  EXPECT_EQ(job_stop_time({}, now_), std::nullopt);
}

TEST_F(StopTime, Margin_IsATenthUpToTwoMinutes) {
  EXPECT_EQ(stop_margin_s(60), 6);
  EXPECT_EQ(stop_margin_s(1200), 120);
  EXPECT_EQ(stop_margin_s(86400), 120);
}

}  // namespace
}  // namespace tandem
