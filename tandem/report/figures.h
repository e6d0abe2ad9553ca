// Numbers as people read them: three significant digits and the unit that fits. What is not finite is shown
// as –.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// What a number is, so that tables and plots can write it: a time is given in ms and shown in ns to s,
// a ratio 12.3 is shown as ×12.3, a share 0.873 as 87.3 %.
enum class Unit { none, milliseconds, ratio, share };

std::string format_figure(double value, Unit unit = Unit::none);

// A whole number with its thousands apart: "60,000".
std::string format_count(std::int64_t count);

// "410–452 µs", or "177 µs–12.3 ms" where the ends have different units.
std::string format_ms_range(double low_ms, double high_ms);

// A tick of an axis: no more digits than it needs ("20 µs", "×10", "50 %", "16k").
std::string format_tick(double value, Unit unit = Unit::none);

}  // namespace tandem
