// Rounds before the unit is chosen, so that 999.7 µs is shown as 1.00 ms and not as 1000 µs.
#include "tandem/text/format_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace tandem {
namespace {

constexpr const char* not_a_value = "–";

double rounded(double value) {
  return std::strtod(fmt::format("{:.2e}", value).c_str(), nullptr);
}

std::string three_digits(double value) {
  const double shown = rounded(value);
  if (shown == 0) return "0";
  if (!std::isfinite(shown)) return fmt::format("{:.3g}", value);  // the largest doubles, rounded up
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(shown)) + 1e-9));
  if (exponent < -4 || exponent > 6) return fmt::format("{:.3g}", shown);
  return fmt::format("{:.{}f}", shown, std::max(0, 2 - exponent));
}

struct Scale {
  double factor;  // multiplies a value in the base unit
  const char* name;
};

Scale time_scale(double ms) {
  const double size = std::abs(rounded(ms));
  if (size >= 1e3) return {1e-3, "s"};
  if (size >= 1 || size == 0) return {1, "ms"};
  if (size >= 1e-3) return {1e3, "µs"};
  return {1e6, "ns"};
}

Scale count_scale(double value) {
  constexpr std::array<Scale, 3> scales{{{1e-9, "G"}, {1e-6, "M"}, {1e-3, "k"}}};
  const double size = std::abs(value);
  if (size < 1e4 || size >= 1e13) return {1, ""};
  return *std::find_if(scales.begin(), scales.end(), [&](const Scale& s) { return size * s.factor >= 1; });
}

}  // namespace

std::string format_number(double value, Unit unit) {
  if (!std::isfinite(value)) return not_a_value;
  switch (unit) {
    case Unit::milliseconds: {
      const Scale scale = time_scale(value);
      return fmt::format("{} {}", three_digits(value * scale.factor), scale.name);
    }
    case Unit::ratio:
      return fmt::format("×{}", three_digits(value));
    case Unit::share:
      if (value > 0 && value < 0.0005) return "<0.1 %";
      return fmt::format("{:.1f} %", value * 100);
    case Unit::count:
      return format_rounded(value);
    case Unit::none:
      break;
  }
  return three_digits(value);
}

std::string format_count(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string format_decimals(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  return std::abs(value) < 1e6 ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.3g}", value);
}

std::string format_rounded(double value) {
  if (!std::isfinite(value) || std::abs(value) > 1e15) return "–";
  return format_count(std::llround(value));
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "–";
  if (seconds < 60) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  if (total < 3600) return fmt::format("{} min {:02} s", total / 60, total % 60);
  return fmt::format("{} h {:02} min", total / 3600, total / 60 % 60);
}

std::string format_ms_range(double low_ms, double high_ms) {
  if (!std::isfinite(low_ms) || !std::isfinite(high_ms)) return not_a_value;
  const Scale scale = time_scale(high_ms);
  if (low_ms != 0 && time_scale(low_ms).factor != scale.factor)
    return format_number(low_ms, Unit::milliseconds) + "–" + format_number(high_ms, Unit::milliseconds);
  return fmt::format("{}–{} {}", three_digits(low_ms * scale.factor), three_digits(high_ms * scale.factor),
                     scale.name);
}

std::string format_tick(double value, Unit unit) {
  if (!std::isfinite(value)) return not_a_value;
  if (unit == Unit::share) return fmt::format("{:.6g} %", value * 100);
  if (unit == Unit::ratio) return "×" + format_tick(value);
  if (value == 0) return "0";
  if (unit == Unit::milliseconds) {
    const Scale scale = time_scale(value);
    return fmt::format("{:.6g} {}", value * scale.factor, scale.name);
  }
  const Scale scale = count_scale(value);
  return fmt::format("{:.6g}{}", value * scale.factor, scale.name);
}

}  // namespace tandem
