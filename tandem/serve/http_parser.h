// A strict parser of HTTP/1.1 requests: a function of bytes, without sockets, clocks or threads. What two
// programs could read differently is refused, so that no request can be hidden inside another: a length and
// chunks together, two lengths, folded lines, bare line feeds, spaces before a colon, unknown encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/serve/http_message.h"

namespace tandem {

struct HttpLimits {
  std::size_t max_header = 16 << 10;  // request line and fields, in bytes
  std::size_t max_fields = 100;
  std::int64_t max_body = 32 << 20;    // bytes, without the framing of chunks
  std::size_t max_framing = 64 << 10;  // of chunks, in bytes beyond those of the body
};

class HttpParser {
 public:
  enum class Stage {
    head,      // the header is not complete
    body,      // the header is, and may be examined before the body is read
    complete,  // the request is
    failed     // it was refused: status() and reason(); the connection cannot be used any further
  };

  explicit HttpParser(const HttpLimits& limits = {}) : limits_(limits) {}

  // Takes bytes in order and returns how many it took. It stops after the header and after the request:
  // what remains belongs to the body or to the next request. Which bytes come in one call makes no
  // difference.
  std::size_t feed(std::string_view bytes);

  Stage stage() const { return stage_; }
  // Whether a byte of the request has come.
  bool has_begun() const { return has_begun_; }
  // Valid from Stage::body on; the body from Stage::complete on. May be moved from.
  HttpRequest& request() { return request_; }
  // The bytes of the body that are known to come; grows with every chunk.
  std::int64_t announced_body() const { return announced_; }
  int status() const { return status_; }
  const std::string& reason() const { return reason_; }

  // Begins the next request.
  void reset();

 private:
  enum class Chunk { size, size_end, data, data_end, data_end_lf, last_end, last_end_lf };

  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t feed_chunks(std::string_view bytes);
  bool take_chunk_byte(char byte);
  void begin_chunk();
  void parse_head();
  bool parse_request_line(std::string_view line);
  bool parse_field(std::string_view line);
  bool check_fields();
  bool check_body_fields();
  bool fail(int status, std::string_view reason);

  HttpLimits limits_;
  Stage stage_ = Stage::head;
  bool has_begun_ = false;
  std::string head_;
  HttpRequest request_;
  bool is_version_1_0_ = false;
  bool is_chunked_ = false;
  Chunk chunk_ = Chunk::size;
  std::uint64_t chunk_size_ = 0;
  int chunk_digits_ = 0;
  std::size_t framing_ = 0;
  std::int64_t announced_ = 0;
  int status_ = 0;
  std::string reason_;
};

}  // namespace tandem
