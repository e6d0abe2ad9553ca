// Where a server listens: an address and a port, or a Unix socket.
#pragma once

#include <string>
#include <string_view>

#include "tandem/process/descriptor.h"

namespace tandem {

struct ListenAddress {
  std::string host;       // a numeric address: "127.0.0.1", "::1"; empty for a Unix socket
  int port = 0;           // 0: any free one
  std::string unix_path;  // of a Unix socket; empty otherwise

  // "127.0.0.1:8080", "[::1]:8080" or "unix:/run/tandem.sock"
  std::string to_string() const;
  bool is_unix() const { return !unix_path.empty(); }
  // Whether only processes of this machine can connect.
  bool is_local() const;
  // Whether it stands for every address of the machine: 0.0.0.0, ::
  bool is_wildcard() const;
};

// "ADDRESS:PORT", "[ADDRESS]:PORT", "localhost:PORT", "PORT" (on 127.0.0.1) or "unix:PATH". Throws Error.
ListenAddress parse_listen_address(const std::string& text);

// Whether `text` is a numeric address of IPv4 or IPv6, without brackets.
bool is_numeric_address(std::string_view text);

// A socket that listens. A Unix socket can be used by its owner alone, and its file is removed with it.
class ListenSocket {
 public:
  // Throws Error if the address is in use or cannot be had.
  explicit ListenSocket(const ListenAddress& address);
  ~ListenSocket();
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&&) = delete;

  int fd() const { return socket_.get(); }
  // With the port that was chosen.
  const ListenAddress& address() const { return address_; }
  // Stops listening.
  void close();

 private:
  Descriptor socket_;
  ListenAddress address_;
};

}  // namespace tandem
