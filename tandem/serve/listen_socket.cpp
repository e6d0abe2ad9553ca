#include "tandem/serve/listen_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress internet_address(const ListenAddress& address) {
  SocketAddress result;
  const auto port = htons(static_cast<std::uint16_t>(address.port));
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    std::memcpy(&result.storage, &v4, result.length = sizeof v4);
  } else {
    check(::inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1,
          "[serve] expected a numeric address, got '{}'", address.host);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    std::memcpy(&result.storage, &v6, result.length = sizeof v6);
  }
  return result;
}

SocketAddress unix_address(const std::string& path) {
  sockaddr_un local{};
  check(path.size() < sizeof local.sun_path, "[serve] {}: expected a path of less than {} bytes for a socket",
        path, sizeof local.sun_path);
  local.sun_family = AF_UNIX;
  path.copy(local.sun_path, path.size());
  SocketAddress result;
  std::memcpy(&result.storage, &local, result.length = sizeof local);
  return result;
}

[[noreturn]] void fail_in_use(const ListenAddress& address) {
  fail("[serve] {} is in use: another program listens there", address.to_string());
}

// Removes the file of a Unix socket on which nobody listens any more.
void remove_stale_socket(const ListenAddress& address) {
  struct stat info {};
  if (::lstat(address.unix_path.c_str(), &info) != 0) return;
  check(S_ISSOCK(info.st_mode), "[serve] {}: expected no file or a socket, got another file",
        address.unix_path);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  SocketAddress target = unix_address(address.unix_path);
  if (::connect(probe.get(), target.get(), target.length) == 0 || errno != ECONNREFUSED) fail_in_use(address);
  ::unlink(address.unix_path.c_str());
}

int bound_port(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  ::getsockname(fd, address.get(), &address.length);
  if (address.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

}  // namespace

std::string ListenAddress::to_string() const {
  if (is_unix()) return "unix:" + unix_path;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

bool ListenAddress::is_local() const {
  return is_unix() || host == "::1" || host.starts_with("127.");
}

bool ListenAddress::is_wildcard() const {
  return host == "0.0.0.0" || host == "::";
}

bool is_numeric_address(std::string_view text) {
  unsigned char bytes[sizeof(in6_addr)];
  const std::string word(text);
  return ::inet_pton(AF_INET, word.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, word.c_str(), bytes) == 1;
}

ListenAddress parse_listen_address(const std::string& text) {
  if (text.starts_with("unix:")) {
    check(text.size() > 5, "[serve] expected unix:PATH, got '{}'", text);
    return {.unix_path = text.substr(5)};
  }
  const std::size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(colon == std::string::npos ? text : text.substr(colon + 1));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  check(port && is_numeric_address(host),
        "[serve] expected ADDRESS:PORT with a numeric address, or unix:PATH, got '{}'", text);
  return {.host = host, .port = *port};
}

ListenSocket::ListenSocket(const ListenAddress& address) : address_(address) {
  if (address.is_unix()) remove_stale_socket(address);
  SocketAddress target = address.is_unix() ? unix_address(address.unix_path) : internet_address(address);
  socket_ = Descriptor(::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) fail("[serve] cannot make a socket: {}", errno_message(errno));
  const int on = 1;
  if (!address.is_unix())  // a server that was just ended does not block its port
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const mode_t previous = ::umask(S_IRWXG | S_IRWXO);
  const bool is_bound = ::bind(socket_.get(), target.get(), target.length) == 0;
  const int reason = errno;
  ::umask(previous);
  if (!is_bound && reason == EADDRINUSE) fail_in_use(address);
  check(is_bound && ::listen(socket_.get(), SOMAXCONN) == 0, "[serve] cannot listen on {}: {}",
        address.to_string(), errno_message(is_bound ? errno : reason));
  if (!address.is_unix()) address_.port = bound_port(socket_.get());
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : socket_(std::move(other.socket_)), address_(std::exchange(other.address_, {})) {}

ListenSocket::~ListenSocket() {
  close();
}

void ListenSocket::close() {
  if (socket_ && address_.is_unix()) ::unlink(address_.unix_path.c_str());
  socket_.reset();
}

}  // namespace tandem
