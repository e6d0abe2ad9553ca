#include "tandem/dist/handshake.h"

#include <algorithm>
#include <charconv>

#include "tandem/core/check.h"

namespace tandem {
namespace {

void put(std::string& text, std::string_view value) {
  text += fmt::format("{}:{}", value.size(), value);
}

std::string take(std::string_view& text) {
  std::size_t size = 0;
  const auto colon = text.find(':');
  const auto result = std::from_chars(text.data(), text.data() + std::min(colon, text.size()), size);
  check(colon != std::string_view::npos && result.ec == std::errc() && result.ptr == text.data() + colon &&
            size <= text.size() - colon - 1,
        "[group] expected a greeting, got something else");
  std::string value(text.substr(colon + 1, size));
  text.remove_prefix(colon + 1 + size);
  return value;
}

std::int64_t take_number(std::string_view& text) {
  const std::string value = take(text);
  std::int64_t number = 0;
  const auto result = std::from_chars(value.data(), value.data() + value.size(), number);
  check(result.ec == std::errc(), "[group] expected a greeting, got something else");
  return number;
}

// At most 60 characters from a bit before `begin` on.
std::string excerpt(const std::string& text, std::size_t begin) {
  constexpr std::size_t max = 60, before = 20;
  if (text.size() <= max) return text;
  const std::size_t from = begin > before ? begin - before : 0;
  return (from > 0 ? "…" : "") + text.substr(from, max) + (from + max < text.size() ? "…" : "");
}

const std::string* find(const NamedTexts& texts, const std::string& name) {
  for (const auto& [key, value] : texts)
    if (key == name) return &value;
  return nullptr;
}

std::string describe(const Place& place) {
  return fmt::format("{} (host {})", place.rank, place.host);
}

void check_pair(const Greeting& a, const Greeting& b) {
  const auto missing = [](const Greeting& has, const Greeting& lacks, const std::string& name) {
    fail("[group] rank {} has {} for rank {} to agree with, which has none", describe(has.place), name,
         describe(lacks.place));
  };
  for (const auto& [name, value] : a.must_agree) {
    const std::string* other = find(b.must_agree, name);
    if (!other) missing(a, b, name);
    const auto differs = std::ranges::mismatch(value, *other).in1;
    const auto at = static_cast<std::size_t>(differs - value.begin());
    check(value == *other, "[group] ranks {} and {} differ in {}: {} and {}", describe(a.place),
          describe(b.place), name, excerpt(value, at), excerpt(*other, at));
  }
  for (const auto& [name, value] : b.must_agree)
    if (!find(a.must_agree, name)) missing(b, a, name);
}

}  // namespace

std::string encode(const Greeting& greeting) {
  std::string text;
  put(text, std::to_string(greeting.place.rank));
  put(text, std::to_string(greeting.place.size));
  put(text, greeting.place.host);
  put(text, std::to_string(greeting.place.pid));
  put(text, greeting.process_domain);
  for (const auto& [name, value] : greeting.must_agree) {
    put(text, name);
    put(text, value);
  }
  return text;
}

Greeting decode(std::string_view text) {
  Greeting greeting;
  greeting.place.rank = static_cast<int>(take_number(text));
  greeting.place.size = static_cast<int>(take_number(text));
  greeting.place.host = take(text);
  greeting.place.pid = take_number(text);
  greeting.process_domain = take(text);
  while (!text.empty()) {
    std::string name = take(text);
    greeting.must_agree.emplace_back(std::move(name), take(text));
  }
  return greeting;
}

void check_agreement(const std::vector<Greeting>& ranks) {
  for (const Greeting& one : ranks)
    if (&one != &ranks.front()) check_pair(ranks.front(), one);
}

std::vector<int> visible_processes(const std::vector<Greeting>& ranks, int rank) {
  const Greeting& own = ranks[static_cast<std::size_t>(rank)];
  std::vector<int> visible;
  for (const Greeting& one : ranks)
    if (one.place.rank != rank && one.place.host == own.place.host && !own.process_domain.empty() &&
        one.process_domain == own.process_domain)
      visible.push_back(one.place.rank);
  return visible;
}

std::vector<Place> number_nodes(const std::vector<Greeting>& ranks) {
  std::vector<Place> places;
  std::vector<std::string> hosts;
  for (const Greeting& one : ranks) {
    Place place = one.place;
    const auto host = std::ranges::find(hosts, place.host);
    place.node = static_cast<int>(host - hosts.begin());
    if (host == hosts.end()) hosts.push_back(place.host);
    place.local_rank = static_cast<int>(
        std::ranges::count(places, place.host, [](const Place& lower) { return lower.host; }));
    place.local_size = static_cast<int>(
        std::ranges::count(ranks, place.host, [](const Greeting& other) { return other.place.host; }));
    places.push_back(place);
  }
  return places;
}

}  // namespace tandem
