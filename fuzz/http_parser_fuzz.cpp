// Requests of HTTP: the same result whether the bytes come at once or in pieces, and only what the limits
// allow.
#include <algorithm>
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/serve/http_parser.h"

namespace tandem {
namespace {

constexpr HttpLimits limits{.max_header = 256, .max_fields = 8, .max_body = 64, .max_framing = 32};

struct Result {
  HttpParser::Stage stage;
  int status;
  HttpRequest request;
  std::size_t taken;
};

// Feeds at most `piece` bytes at a time until the request is complete or refused.
Result parse(std::string_view bytes, std::size_t piece) {
  HttpParser parser(limits);
  std::size_t taken = 0;
  while (taken < bytes.size() && parser.stage() != HttpParser::Stage::complete &&
         parser.stage() != HttpParser::Stage::failed) {
    const std::size_t now = parser.feed(bytes.substr(taken, piece));
    require(now > 0 && now <= std::min(piece, bytes.size() - taken));
    taken += now;
    require(parser.announced_body() <= limits.max_body);
  }
  return {parser.stage(), parser.status(), std::move(parser.request()), taken};
}

void check_request(const HttpRequest& request) {
  require(request.path.starts_with('/') && request.path.find('?') == std::string::npos);
  require(request.fields.size() <= limits.max_fields);
  require(static_cast<std::int64_t>(request.body.size()) <= limits.max_body);
  for (const HttpField& field : request.fields) {
    require(!field.name.empty() && field.name == lower_case(field.name));
    require((field.name + field.value).find_first_of("\r\n\0") == std::string::npos);
  }
  for (const char* const name : {"content-length", "transfer-encoding", "host"})
    require(std::ranges::count(request.fields, name, &HttpField::name) <= 1);
  require(!(request.field("content-length") && request.field("transfer-encoding")));
  if (const auto query = parse_query(request.query))
    for (std::size_t i = 1; i < query->size(); ++i) require((*query)[i].first != (*query)[i - 1].first);
}

// Whatever an error quotes, the response has one head and the announced body.
void check_response(int status, std::string_view text) {
  const HttpResponse response = error_response(status, text);
  const std::string bytes = serialize(response, true, true, 1'790'000'000);
  const std::size_t end = bytes.find("\r\n\r\n");
  require(end != std::string::npos && bytes.substr(end + 4) == response.body);
  require(bytes.find("Content-Length: " + std::to_string(response.body.size()) + "\r\n") < end);
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  std::string_view bytes = text_of(data, size);
  while (!bytes.empty()) {  // requests after one another
    const Result whole = parse(bytes, bytes.size()), one = parse(bytes, 1), seven = parse(bytes, 7);
    for (const Result* const other : {&one, &seven}) {
      require(whole.stage == other->stage && whole.status == other->status && whole.taken == other->taken);
      require(whole.request.path == other->request.path && whole.request.body == other->request.body);
      require(whole.request.fields.size() == other->request.fields.size());
    }
    if (whole.stage == HttpParser::Stage::failed) {
      require(whole.status >= 400 && whole.status < 600);
      check_response(whole.status, bytes);
    }
    if (whole.stage != HttpParser::Stage::complete) break;
    check_request(whole.request);
    bytes.remove_prefix(whole.taken);
  }
  return 0;
}
