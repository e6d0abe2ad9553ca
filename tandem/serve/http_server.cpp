#include "tandem/serve/http_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <limits>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// What epoll reports besides connections.
constexpr std::uint64_t listen_id = 0, reply_id = 1, stop_id = 2, first_connection = 3;
constexpr std::size_t buffer_bytes = 64 << 10;
constexpr std::int64_t max_discarded = 1 << 20;  // bytes that are read after a refusal
constexpr std::int64_t ns_per_ms = 1'000'000;
const HttpField retry_soon{"Retry-After", "1"};

Descriptor open_null() {
  return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

struct HttpServer::Connection {
  Connection(std::uint64_t number, Descriptor accepted, const HttpLimits& limits)
      : id(number), socket(std::move(accepted)), parser(limits) {}

  std::uint64_t id;
  Descriptor socket;  // empty: closed, and deleted at the end of the loop's turn
  HttpParser parser;
  State state = State::reading;
  std::string input;  // read and not parsed: the beginning of the next request
  std::string output;
  std::size_t written = 0;
  std::string path;
  bool is_head = false;
  bool keep_alive = true;
  bool head_checked = false;
  std::int64_t reserved = 0;                       // bytes of the body
  std::shared_ptr<std::atomic<bool>> stream_open;  // of a response in parts, until its end
  std::int64_t discarded = 0;
  std::int64_t begin_ns = 0;
  std::int64_t deadline_ns = 0;
};

HttpServer::HttpServer(ListenSocket socket, HttpHandlers handlers, HttpServerOptions options)
    : socket_(std::move(socket)),
      address_(socket_.address()),
      handlers_(std::move(handlers)),
      options_(std::move(options)),
      replies_(std::make_shared<ReplyQueue>()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      spare_(open_null()),
      next_id_(first_connection),
      buffer_(buffer_bytes, '\0') {
  if (!epoll_) fail("[serve] cannot watch connections: {}", errno_message(errno));
  watch(socket_.fd(), listen_id, EPOLLIN, true);
  watch(replies_->fd(), reply_id, EPOLLIN, true);
}

HttpServer::~HttpServer() = default;

void HttpServer::watch(int fd, std::uint64_t id, std::uint32_t events, bool is_new) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) != 0)
    fail("[serve] cannot watch a connection: {}", errno_message(errno));
}

void HttpServer::stop() {
  stops_.fetch_add(1);
  wake();
}

void HttpServer::stop_on(int signal_fd) {
  stop_fd_ = signal_fd;
  watch(signal_fd, stop_id, EPOLLIN, true);
}

// ---- the loop ----

int HttpServer::wait_ms() const {
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  if (!deadlines_.empty()) end_ns = deadlines_.begin()->first;
  if (drain_end_ns_) end_ns = std::min(end_ns, *drain_end_ns_);
  if (end_ns == std::numeric_limits<std::int64_t>::max()) return -1;
  const std::int64_t left_ns = end_ns - options_.clock_ns();
  return static_cast<int>(std::clamp<std::int64_t>((left_ns + ns_per_ms - 1) / ns_per_ms, 0, 3'600'000));
}

void HttpServer::run() {
  epoll_event events[256];
  while (true) {
    if (stops_.load() > 0 && !drain_end_ns_) begin_drain();
    if (drain_end_ns_ && (connections_.empty() || stops_.load() > 1 || options_.clock_ns() >= *drain_end_ns_))
      break;
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), wait_ms());
    if (count < 0 && errno != EINTR) fail("[serve] cannot wait for requests: {}", errno_message(errno));
    for (int i = 0; i < count; ++i) on_event(events[i].data.u64, events[i].events);
    end_expired();
    for (const std::uint64_t id : std::exchange(closed_, {})) connections_.erase(id);
  }
  for (auto& [id, connection] : connections_) close(*connection);
  connections_.clear();
}

void HttpServer::on_event(std::uint64_t id, std::uint32_t events) {
  if (id == listen_id) return accept_all();
  if (id == reply_id) return take_replies();
  if (id == stop_id) {
    signalfd_siginfo signal{};
    if (::read(stop_fd_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) stops_.fetch_add(1);
    return;
  }
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second->socket) return;
  Connection& connection = *found->second;
  if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && connection.state != State::reading))
    return close(connection);
  switch (connection.state) {
    case State::reading:
      return read_from(connection);
    case State::writing:
      write_to(connection);
      return advance(connection);
    case State::streaming:
      if ((events & EPOLLIN) != 0) discard_from(connection);
      if ((events & EPOLLOUT) != 0 && connection.socket) write_to(connection);
      return;
    case State::lingering:
      return discard_from(connection);
    case State::handling:
      return;
  }
}

void HttpServer::begin_drain() {
  drain_end_ns_ = options_.clock_ns() + options_.drain_timeout_ms * ns_per_ms;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.fd(), nullptr);
  socket_.close();
  for (auto& [id, connection] : connections_)
    if (connection->state == State::lingering || connection->state == State::streaming ||
        (connection->state == State::reading && !connection->parser.has_begun()))
      close(*connection);
  for (const std::uint64_t id : std::exchange(closed_, {})) connections_.erase(id);
}

// ---- connections ----

void HttpServer::accept_all() {
  constexpr int max_at_once = 64;  // then others get their turn
  for (int i = 0; i < max_at_once && socket_.fd() >= 0; ++i) {
    Descriptor accepted(::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted && (errno == EMFILE || errno == ENFILE)) {
      spare_.reset();
      refuse_connection(Descriptor(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC)));
      spare_ = open_null();
      return;
    }
    if (!accepted) return;
    if (connection_count() >= options_.max_connections) {
      refuse_connection(std::move(accepted));
      continue;
    }
    const int on = 1;
    if (!address_.is_unix()) ::setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::uint64_t id = next_id_++;
    const int fd = accepted.get();
    Connection& connection =
        *connections_.emplace(id, std::make_unique<Connection>(id, std::move(accepted), options_.limits))
             .first->second;
    connection_count_.fetch_add(1);
    watch(fd, id, EPOLLIN, true);
    set_deadline(connection, options_.idle_timeout_ms);
  }
}

void HttpServer::refuse_connection(Descriptor socket) {
  if (!socket) return;
  const std::string text = serialize(error_response(503, "too many connections", {retry_soon}), false, true,
                                     static_cast<std::int64_t>(::time(nullptr)));
  [[maybe_unused]] const ssize_t sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  if (handlers_.observe) handlers_.observe("", 503, 0);
}

void HttpServer::close(Connection& connection) {
  if (!connection.socket) return;
  if (connection.stream_open) connection.stream_open->store(false);
  connection.socket.reset();
  closed_.push_back(connection.id);
  connection_count_.fetch_sub(1);
  deadlines_.erase({connection.deadline_ns, connection.id});
  buffered_ -= std::exchange(connection.reserved, 0);
}

void HttpServer::set_deadline(Connection& connection, std::int64_t timeout_ms) {
  deadlines_.erase({connection.deadline_ns, connection.id});
  connection.deadline_ns = options_.clock_ns() + timeout_ms * ns_per_ms;
  deadlines_.insert({connection.deadline_ns, connection.id});
}

void HttpServer::set_state(Connection& connection, State state) {
  if (connection.state == state) return;
  connection.state = state;
  await_events(connection);
  if (state == State::handling)  // the handler answers in time of its own
    deadlines_.erase({connection.deadline_ns, connection.id});
}

void HttpServer::await_events(Connection& connection) {
  std::uint32_t events = EPOLLIN;
  if (connection.state == State::writing) events = EPOLLOUT;
  if (connection.state == State::handling) events = 0;
  if (connection.state == State::streaming && !connection.output.empty()) events |= EPOLLOUT;
  watch(connection.socket.get(), connection.id, events, false);
}

void HttpServer::end_expired() {
  const std::int64_t now_ns = options_.clock_ns();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
    const std::uint64_t id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    if (const auto found = connections_.find(id); found != connections_.end()) expire(*found->second);
  }
}

void HttpServer::expire(Connection& connection) {
  const bool is_incomplete = connection.state == State::reading && connection.parser.has_begun();
  if (is_incomplete)
    refuse(connection, error_response(408, "the request took too long"));
  else
    close(connection);
}

// ---- reading ----

void HttpServer::read_from(Connection& connection) {
  const ssize_t count = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return close(connection);  // also in the middle of a request
  connection.input.append(buffer_.data(), static_cast<std::size_t>(count));
  advance(connection);
}

void HttpServer::discard_from(Connection& connection) {
  const ssize_t count = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  connection.discarded += std::max<ssize_t>(count, 0);
  if (count <= 0 || connection.discarded > max_discarded) close(connection);
}

// Parses what has come, request after request, as long as they are answered at once.
void HttpServer::advance(Connection& connection) {
  std::size_t used = 0;
  while (connection.socket && connection.state == State::reading && used < connection.input.size()) {
    HttpParser& parser = connection.parser;
    if (!parser.has_begun()) {
      connection.begin_ns = options_.clock_ns();
      set_deadline(connection, options_.header_timeout_ms);
    }
    used += parser.feed(std::string_view(connection.input).substr(used));
    if (parser.stage() == HttpParser::Stage::failed) {
      refuse(connection, error_response(parser.status(), parser.reason()));
      break;
    }
    if (parser.stage() == HttpParser::Stage::head) continue;
    if (!connection.head_checked && !on_head(connection)) continue;
    if (!reserve_body(connection)) break;
    if (parser.stage() != HttpParser::Stage::complete) continue;
    set_state(connection, State::handling);
    try {
      handlers_.handle(std::move(parser.request()), HttpReply(replies_, connection.id));
    } catch (const std::exception&) {  // its reply has become status 500
    }
  }
  connection.input.erase(0, used);
}

// Whether the request is to be read further.
bool HttpServer::on_head(Connection& connection) {
  HttpParser& parser = connection.parser;
  const HttpRequest& request = parser.request();
  connection.head_checked = true;
  connection.is_head = request.method == HttpMethod::head;
  connection.keep_alive = request.keep_alive;
  connection.path = request.path;
  const bool has_body = parser.stage() == HttpParser::Stage::body;
  if (const auto refusal = handlers_.check(request)) {
    if (has_body)
      refuse(connection, *refusal);
    else
      respond(connection, *refusal);
    return false;
  }
  if (!has_body) return true;
  set_deadline(connection, options_.body_timeout_ms);
  if (!request.expects_continue || !reserve_body(connection)) return connection.state == State::reading;
  constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  if (::send(connection.socket.get(), go_on.data(), go_on.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(go_on.size()))
    close(connection);
  return static_cast<bool>(connection.socket);
}

// Counts the bytes of the body that are known to come.
bool HttpServer::reserve_body(Connection& connection) {
  const std::int64_t more = connection.parser.announced_body() - connection.reserved;
  if (buffered_ + more > options_.max_buffered) {
    refuse(connection, error_response(503, "too many bytes of requests at once", {retry_soon}));
    return false;
  }
  buffered_ += more;
  connection.reserved += more;
  return true;
}

// ---- writing ----

void HttpServer::take_replies() {
  for (const ReplyQueue::Entry& entry : replies_->take_all()) {
    const auto found = connections_.find(entry.connection);
    if (found == connections_.end() || !found->second->socket) continue;
    Connection& connection = *found->second;
    switch (entry.kind) {
      case ReplyQueue::Kind::whole:
        respond(connection, entry.response);
        advance(connection);
        break;
      case ReplyQueue::Kind::begin:
        begin_stream(connection, entry);
        break;
      case ReplyQueue::Kind::part:
        add_part(connection, entry.response.body);
        break;
      case ReplyQueue::Kind::end:
        end_stream(connection);
        break;
    }
  }
}

// ---- streams ----

void HttpServer::begin_stream(Connection& connection, const ReplyQueue::Entry& entry) {
  connection.stream_open = entry.is_open;
  connection.keep_alive = false;
  respond(connection, entry.response);
}

void HttpServer::add_part(Connection& connection, std::string_view part) {
  if (!connection.stream_open || connection.is_head) return;
  if (connection.output.size() - connection.written + part.size() > options_.max_stream_buffer)
    return close(connection);
  connection.output.erase(0, std::exchange(connection.written, 0));
  connection.output += part;
  if (connection.state == State::streaming) write_to(connection);
}

void HttpServer::end_stream(Connection& connection) {
  connection.stream_open.reset();
  if (connection.state == State::streaming) write_to(connection);
}

// A response after which the rest of the request is not read.
void HttpServer::refuse(Connection& connection, const HttpResponse& response) {
  connection.keep_alive = false;
  respond(connection, response);
}

void HttpServer::respond(Connection& connection, const HttpResponse& response) {
  if (drain_end_ns_) connection.keep_alive = false;
  buffered_ -= std::exchange(connection.reserved, 0);
  connection.output = serialize(response, connection.keep_alive, !connection.is_head,
                                static_cast<std::int64_t>(::time(nullptr)));
  connection.written = 0;
  if (handlers_.observe)
    handlers_.observe(connection.path, response.status, options_.clock_ns() - connection.begin_ns);
  set_state(connection, State::writing);
  set_deadline(connection, options_.write_timeout_ms);
  write_to(connection);
}

void HttpServer::write_to(Connection& connection) {
  while (connection.written < connection.output.size()) {
    const std::string_view rest = std::string_view(connection.output).substr(connection.written);
    const ssize_t count = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (connection.state == State::streaming) {
        if (!deadlines_.contains({connection.deadline_ns, connection.id}))
          set_deadline(connection, options_.write_timeout_ms);
        await_events(connection);
      }
      return;
    }
    if (count <= 0) return close(connection);
    connection.written += static_cast<std::size_t>(count);
    set_deadline(connection, options_.write_timeout_ms);
  }
  on_written(connection);
}

void HttpServer::on_written(Connection& connection) {
  connection.output = {};
  connection.written = 0;
  if (connection.stream_open && !connection.is_head && !drain_end_ns_) {
    connection.state = State::streaming;
    deadlines_.erase({connection.deadline_ns, connection.id});  // parts come when they come
    return await_events(connection);
  }
  if (!connection.keep_alive) {
    // Closing with unread bytes would reset the connection and take the response away from the client.
    ::shutdown(connection.socket.get(), SHUT_WR);
    set_state(connection, State::lingering);
    set_deadline(connection, options_.linger_timeout_ms);
    return;
  }
  connection.parser.reset();
  connection.head_checked = false;
  connection.is_head = false;
  connection.path.clear();
  set_state(connection, State::reading);
  set_deadline(connection, options_.idle_timeout_ms);
}

}  // namespace tandem
