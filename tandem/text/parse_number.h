// Numbers from text that must be a number and nothing else: no spaces, no sign "+", no trailing characters.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

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

// The numbers between separators, such as "784,200,10" or "640x480"; nothing unless every part is a number.
template <ParsedNumber T>
std::optional<std::vector<T>> parse_numbers(std::string_view text, char separator) {
  std::vector<T> numbers;
  while (true) {
    const std::size_t end = text.find(separator);
    const std::optional<T> number = parse_number<T>(text.substr(0, end));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (end == std::string_view::npos) return numbers;
    text.remove_prefix(end + 1);
  }
}

}  // namespace tandem
