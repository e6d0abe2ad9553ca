// Numbers from text that must be a number and nothing else: no spaces, no sign "+", no trailing characters.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace tandem {

template <class T>
concept ParsedNumber = (std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>;

// The value of the whole of `text`; nothing when any character is left over or the value does not fit T.
// Floating point is decimal or scientific, independent of the locale, and may be "inf" or "nan".
template <ParsedNumber T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && next == end ? std::optional<T>(value) : std::nullopt;
}

// The same for integers in base 2 to 36, without a prefix such as "0x".
template <std::integral T>
requires ParsedNumber<T> std::optional<T> parse_number(std::string_view text, int base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc{} && next == end ? std::optional<T>(value) : std::nullopt;
}

}  // namespace tandem
