#include "tandem/serve/http_parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

// Fields of which a request has one at most.
constexpr std::array single_fields{
    "host", "content-length", "transfer-encoding", "authorization", "content-type", "origin", "expect"};

bool is_token_byte(char c) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_byte);
}

// Visible ASCII, which is all that a request target may contain.
bool is_target_byte(char c) {
  return c > ' ' && c < '\x7f';
}

// A line end, a tab, or no control character.
bool is_head_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\r' || c == '\n' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The items of a comma-separated field, such as "close, TE".
bool has_item(std::string_view list, std::string_view item) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (equal_ignoring_case(trimmed(list.substr(0, comma)), item)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<unsigned> hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

}  // namespace

void HttpParser::reset() {
  *this = HttpParser(limits_);
}

bool HttpParser::fail(int status, std::string_view reason) {
  stage_ = Stage::failed;
  status_ = status;
  reason_ = reason;
  return false;
}

std::size_t HttpParser::feed(std::string_view bytes) {
  if (bytes.empty() || stage_ == Stage::complete || stage_ == Stage::failed) return 0;
  has_begun_ = true;
  return stage_ == Stage::head ? feed_head(bytes) : feed_body(bytes);
}

// ---- header ----

std::size_t HttpParser::feed_head(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const char byte = bytes[taken++];
    const char before = head_.empty() ? '\0' : head_.back();
    if (!is_head_byte(byte)) {
      fail(400, "control character in the header");
      return taken;
    }
    if ((byte == '\n') != (before == '\r')) {
      fail(400, "line of the header that does not end in CR LF");
      return taken;
    }
    if (head_.size() == limits_.max_header) {
      fail(431, "header too large");
      return taken;
    }
    head_ += byte;
    if (byte == '\n' && head_.ends_with("\r\n\r\n")) {
      parse_head();
      return taken;
    }
    if (byte == '\n' && head_.size() == 2) {
      fail(400, "empty line in place of a request");
      return taken;
    }
  }
  return taken;
}

void HttpParser::parse_head() {
  std::string_view rest = head_;
  rest.remove_suffix(2);  // the empty line
  bool is_first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!(is_first ? parse_request_line(line) : parse_field(line))) return;
    is_first = false;
  }
  if (!check_fields() || !check_body_fields()) return;
  head_.clear();
  head_.shrink_to_fit();
  stage_ = is_chunked_ || announced_ > 0 ? Stage::body : Stage::complete;
}

bool HttpParser::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !is_token(line.substr(0, first)))
    return fail(400, "request line that is not METHOD TARGET HTTP/1.1");
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (version.size() != 8 || !version.starts_with("HTTP/"))
    return fail(400, "request line that is not METHOD TARGET HTTP/1.1");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return fail(505, "expected HTTP/1.1");
  is_version_1_0_ = version == "HTTP/1.0";
  request_.keep_alive = !is_version_1_0_;
  if (!target.starts_with('/') || !std::ranges::all_of(target, is_target_byte))
    return fail(400, "expected a request target that begins with '/'");
  const std::size_t mark = std::min(target.find('?'), target.size());
  request_.path = target.substr(0, mark);
  request_.query = target.substr(std::min(mark + 1, target.size()));
  for (const HttpMethod known : {HttpMethod::get, HttpMethod::head, HttpMethod::post})
    if (name_of(known) == method) {
      request_.method = known;
      return true;
    }
  return fail(501, "expected the method GET, HEAD or POST");
}

bool HttpParser::parse_field(std::string_view line) {
  if (request_.fields.size() == limits_.max_fields) return fail(431, "too many header fields");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return fail(400, "header field that is not NAME: VALUE");  // also one that continues a line
  request_.fields.push_back(
      {lower_case(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
  return true;
}

bool HttpParser::check_fields() {
  for (const char* const name : single_fields)
    if (std::ranges::count(request_.fields, name, &HttpField::name) > 1)
      return fail(400, std::string("repeated header field ") + name);
  if (!is_version_1_0_ && !request_.field("host")) return fail(400, "no Host field");
  if (const auto connection = request_.field("connection")) {
    if (has_item(*connection, "close")) request_.keep_alive = false;
  }
  if (const auto expected = request_.field("expect")) {
    if (!equal_ignoring_case(*expected, "100-continue")) return fail(417, "unknown expectation");
    request_.expects_continue = !is_version_1_0_;
  }
  return true;
}

bool HttpParser::check_body_fields() {
  const auto length = request_.field("content-length"), encoding = request_.field("transfer-encoding");
  if (length && encoding) return fail(400, "both Content-Length and Transfer-Encoding");
  if (encoding) {
    if (is_version_1_0_ || !equal_ignoring_case(*encoding, "chunked"))
      return fail(400, "expected the transfer encoding chunked");
    is_chunked_ = true;
  }
  if (length) {
    const bool are_digits =
        !length->empty() && std::ranges::all_of(*length, [](char c) { return c >= '0' && c <= '9'; });
    if (!are_digits) return fail(400, "Content-Length that is not a number");
    const auto bytes = parse_number<std::int64_t>(*length);  // none: larger than any limit
    if (!bytes || *bytes > limits_.max_body) return fail(413, "body too large");
    announced_ = *bytes;
  }
  if (request_.method != HttpMethod::post && (is_chunked_ || announced_ > 0))
    return fail(400, "body of a request that has none");
  if (request_.method == HttpMethod::post && !is_chunked_ && !length)
    return fail(411, "POST without Content-Length");
  return true;
}

// ---- body ----

std::size_t HttpParser::feed_body(std::string_view bytes) {
  if (is_chunked_) return feed_chunks(bytes);
  const std::size_t missing = static_cast<std::size_t>(announced_) - request_.body.size();
  const std::size_t taken = std::min(missing, bytes.size());
  request_.body.append(bytes.substr(0, taken));
  if (taken == missing) stage_ = Stage::complete;
  return taken;
}

std::size_t HttpParser::feed_chunks(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && stage_ == Stage::body) {
    if (chunk_ == Chunk::data) {
      const std::size_t part = std::min<std::uint64_t>(chunk_size_, bytes.size() - taken);
      request_.body.append(bytes.substr(taken, part));
      taken += part;
      chunk_size_ -= part;
      if (chunk_size_ == 0) chunk_ = Chunk::data_end;
      continue;
    }
    if (++framing_ > limits_.max_framing + request_.body.size()) {
      fail(400, "chunks with more framing than content");
      return taken + 1;
    }
    if (!take_chunk_byte(bytes[taken++]) && stage_ != Stage::failed)
      fail(400, "chunk that is not SIZE CR LF DATA CR LF");
  }
  return taken;
}

// Extensions and trailers are not accepted: nothing here uses them.
bool HttpParser::take_chunk_byte(char byte) {
  constexpr int max_digits = 8;
  switch (chunk_) {
    case Chunk::size:
      if (const auto digit = hexadecimal_digit(byte)) {
        if (++chunk_digits_ > max_digits) return false;
        chunk_size_ = chunk_size_ * 16 + *digit;
        return true;
      }
      chunk_ = Chunk::size_end;
      return byte == '\r' && chunk_digits_ > 0;
    case Chunk::size_end:
      if (byte == '\n') begin_chunk();
      return byte == '\n' && stage_ != Stage::failed;
    case Chunk::data_end:
      chunk_ = Chunk::data_end_lf;
      return byte == '\r';
    case Chunk::data_end_lf:
      chunk_ = Chunk::size;
      chunk_digits_ = 0;
      return byte == '\n';
    case Chunk::last_end:
      chunk_ = Chunk::last_end_lf;
      return byte == '\r';
    case Chunk::last_end_lf:
      if (byte == '\n') stage_ = Stage::complete;
      return byte == '\n';
    case Chunk::data:
      break;
  }
  return false;
}

void HttpParser::begin_chunk() {
  if (static_cast<std::int64_t>(chunk_size_) > limits_.max_body - announced_) {
    fail(413, "body too large");
    return;
  }
  announced_ += static_cast<std::int64_t>(chunk_size_);
  chunk_ = chunk_size_ == 0 ? Chunk::last_end : Chunk::data;
}

}  // namespace tandem
