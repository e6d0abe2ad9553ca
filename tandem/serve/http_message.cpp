#include "tandem/serve/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

struct Reason {
  int status;
  std::string_view phrase;
};
constexpr Reason reasons[] = {{200, "OK"},
                              {400, "Bad Request"},
                              {401, "Unauthorized"},
                              {403, "Forbidden"},
                              {404, "Not Found"},
                              {405, "Method Not Allowed"},
                              {408, "Request Timeout"},
                              {411, "Length Required"},
                              {413, "Content Too Large"},
                              {414, "URI Too Long"},
                              {415, "Unsupported Media Type"},
                              {417, "Expectation Failed"},
                              {421, "Misdirected Request"},
                              {422, "Unprocessable Content"},
                              {431, "Request Header Fields Too Large"},
                              {500, "Internal Server Error"},
                              {501, "Not Implemented"},
                              {503, "Service Unavailable"},
                              {505, "HTTP Version Not Supported"}};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale.
std::string http_date(std::int64_t unix_seconds) {
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[static_cast<std::size_t>(time.tm_wday)],
                     time.tm_mday, months[static_cast<std::size_t>(time.tm_mon)], time.tm_year + 1900,
                     time.tm_hour, time.tm_min, time.tm_sec);
}

bool has_field(const HttpResponse& response, std::string_view name) {
  return std::ranges::any_of(response.fields,
                             [&](const HttpField& field) { return equal_ignoring_case(field.name, name); });
}

}  // namespace

std::string_view name_of(HttpMethod method) {
  switch (method) {
    case HttpMethod::get:
      return "GET";
    case HttpMethod::head:
      return "HEAD";
    case HttpMethod::post:
      return "POST";
  }
  return "";
}

std::optional<std::string_view> HttpRequest::field(std::string_view name) const {
  for (const HttpField& candidate : fields)
    if (candidate.name == name) return candidate.value;
  return std::nullopt;
}

HttpResponse error_response(int status, std::string_view text, std::vector<HttpField> fields) {
  const nlohmann::json body{{"error", text}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
          .fields = std::move(fields)};
}

std::string_view reason_phrase(int status) {
  const auto* const found = std::ranges::find(reasons, status, &Reason::status);
  return found == std::end(reasons) ? "Unknown" : found->phrase;
}

std::string serialize(const HttpResponse& response, bool keep_alive, bool with_body,
                      std::int64_t unix_seconds) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Date: {}\r\n"
      "Content-Type: {}\r\n"
      "Connection: {}\r\n"
      "Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "X-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n",
      response.status, reason_phrase(response.status), http_date(unix_seconds), response.content_type,
      keep_alive && !response.is_stream ? "keep-alive" : "close");
  if (!response.is_stream) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  if (!has_field(response, "Content-Security-Policy"))
    text += "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n";
  for (const HttpField& field : response.fields) text += fmt::format("{}: {}\r\n", field.name, field.value);
  text += "\r\n";
  if (with_body) text += response.body;
  return text;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto byte =
        i + 2 < text.size() ? parse_number<unsigned char>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!byte) return std::nullopt;
    decoded += static_cast<char>(*byte);
    i += 2;
  }
  return decoded;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = percent_decoded(part.substr(0, equals));
    auto value = percent_decoded(part.substr(std::min(equals + 1, part.size())));
    if (!name || !value) return std::nullopt;
    for (const auto& [other, ignored] : pairs)
      if (other == *name) return std::nullopt;
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

}  // namespace tandem
