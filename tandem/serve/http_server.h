// HttpServer: one event loop (epoll) for all connections. It never blocks and computes nothing: requests are
// handed to a handler, whose answer may come from any thread. Everything a client can hold is limited before
// memory is taken: the header, the body, all bodies together, time, and the number of connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/process/descriptor.h"
#include "tandem/serve/http_parser.h"
#include "tandem/serve/http_reply.h"
#include "tandem/serve/listen_socket.h"

namespace tandem {

struct HttpServerOptions {
  HttpLimits limits = {};
  std::size_t max_connections = 1024;                 // more get status 503
  std::int64_t max_buffered = std::int64_t{1} << 29;  // bodies of all connections, in bytes; more get 503
  std::int64_t header_timeout_ms = 10'000;  // from the first byte of a request to its last of the header
  std::int64_t body_timeout_ms = 60'000;    // for the body
  std::int64_t idle_timeout_ms = 60'000;    // between requests
  std::int64_t write_timeout_ms = 30'000;   // without a byte of the response being taken
  std::size_t max_stream_buffer =
      8 << 20;  // bytes of a stream that its client has not taken; then it is closed
  std::int64_t linger_timeout_ms = 2'000;  // after a refusal, for the client to read it
  std::int64_t drain_timeout_ms = 30'000;  // of stop()
  std::function<std::int64_t()> clock_ns = monotonic_ns;
};

struct HttpHandlers {
  // Called when the header is complete. A response refuses the request, before its body is read.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> check;
  // Called with the whole request. Must not block.
  std::function<void(HttpRequest, HttpReply)> handle;
  // Called with every response, if set. `path` is empty for a request that could not be parsed.
  std::function<void(std::string_view path, int status, std::int64_t elapsed_ns)> observe = {};
};

class HttpServer {
 public:
  HttpServer(ListenSocket socket, HttpHandlers handlers, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const ListenAddress& address() const { return address_; }
  // Serves until stop(), then answers the requests that have begun and returns.
  void run();
  // May be called from any thread. The second call, or a longer wait than drain_timeout_ms, ends run() at
  // once.
  void stop();
  // A descriptor that calls stop() each time a signal can be read from it (signalfd). Before run().
  void stop_on(int signal_fd);
  // Makes the loop look at its clock now; for tests with another clock.
  void wake() const { replies_->wake(); }
  std::size_t connection_count() const { return connection_count_.load(std::memory_order_relaxed); }

 private:
  struct Connection;
  enum class State { reading, handling, writing, streaming, lingering };

  void watch(int fd, std::uint64_t id, std::uint32_t events, bool is_new);
  int wait_ms() const;
  void accept_all();
  void refuse_connection(Descriptor socket);
  void on_event(std::uint64_t id, std::uint32_t events);
  void read_from(Connection& connection);
  void discard_from(Connection& connection);
  void advance(Connection& connection);
  bool on_head(Connection& connection);
  bool reserve_body(Connection& connection);
  void take_replies();
  void respond(Connection& connection, const HttpResponse& response);
  void begin_stream(Connection& connection, const ReplyQueue::Entry& entry);
  void add_part(Connection& connection, std::string_view part);
  void end_stream(Connection& connection);
  void refuse(Connection& connection, const HttpResponse& response);
  void write_to(Connection& connection);
  void await_events(Connection& connection);
  void on_written(Connection& connection);
  void end_expired();
  void expire(Connection& connection);
  void begin_drain();
  void close(Connection& connection);
  void set_state(Connection& connection, State state);
  void set_deadline(Connection& connection, std::int64_t timeout_ms);

  ListenSocket socket_;
  ListenAddress address_;
  HttpHandlers handlers_;
  HttpServerOptions options_;
  std::shared_ptr<ReplyQueue> replies_;
  Descriptor epoll_;
  Descriptor spare_;  // closed to accept and refuse a connection when no descriptor is left
  int stop_fd_ = -1;
  std::atomic<int> stops_{0};
  std::optional<std::int64_t> drain_end_ns_;
  std::uint64_t next_id_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::uint64_t> closed_;  // deleted at the end of the loop's turn
  std::set<std::pair<std::int64_t, std::uint64_t>> deadlines_;
  std::int64_t buffered_ = 0;
  std::string buffer_;
  std::atomic<std::size_t> connection_count_{0};
};

}  // namespace tandem
