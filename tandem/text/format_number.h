// Formats numbers for people: three significant digits and a fitting unit. A value that is not finite is
// shown as "–".
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// What a number measures. Times are given in milliseconds and shown in ns to s; the ratio 12.3 is shown as
// ×12.3, the share 0.873 as 87.3 %, the count 60000 as 60,000.
enum class Unit { none, milliseconds, ratio, share, count };

std::string format_number(double value, Unit unit = Unit::none);

// An integer with thousands separators: "60,000".
std::string format_count(std::int64_t count);

// "0.6931": so many decimals, three significant digits from a million on.
std::string format_decimals(double value, int digits);

// "62,894": rounded to an integer.
std::string format_rounded(double value);

// "4.21 s", "3 min 05 s", "2 h 10 min".
std::string format_duration(double seconds);

// "410–452 µs", or "177 µs–12.3 ms" when the two ends need different units.
std::string format_ms_range(double low_ms, double high_ms);

// An axis tick label without needless digits: "20 µs", "×10", "50 %", "16k".
std::string format_tick(double value, Unit unit = Unit::none);

}  // namespace tandem
