// Requests and responses of HTTP as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

enum class HttpMethod { get, head, post };

std::string_view name_of(HttpMethod method);

struct HttpField {
  std::string name;  // of a request in lower case
  std::string value;
};

struct HttpRequest {
  HttpMethod method = HttpMethod::get;
  std::string path;   // as sent: routes are fixed ASCII names, so nothing in it is decoded
  std::string query;  // as sent, without the '?'
  std::vector<HttpField> fields;
  std::string body;
  bool keep_alive = true;
  bool expects_continue = false;

  // The value of the field `name`, which is in lower case; none: it was not sent.
  std::optional<std::string_view> field(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpField> fields = {};  // further ones
  bool is_stream = false;              // the body has no length: it ends when the connection is closed
};

// {"error": text}, with further fields such as Retry-After.
HttpResponse error_response(int status, std::string_view text, std::vector<HttpField> fields = {});

// "Not Found"
std::string_view reason_phrase(int status);

// The bytes of a response: security headers, the length and, unless it answers HEAD, the body. `unix_seconds`
// is the time of its Date.
std::string serialize(const HttpResponse& response, bool keep_alive, bool with_body,
                      std::int64_t unix_seconds);

// "%41+b" is "A b"; none for a '%' without two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

// The decoded names and values of "model=a&top=3"; none if one cannot be decoded or a name is repeated.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);

bool equal_ignoring_case(std::string_view a, std::string_view b);
// ASCII letters in lower case.
std::string lower_case(std::string_view text);

}  // namespace tandem
