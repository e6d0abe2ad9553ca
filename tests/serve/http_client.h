// A client for the tests of the server: one connection, blocking.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "tandem/process/descriptor.h"
#include "tandem/serve/http_message.h"
#include "tandem/serve/listen_socket.h"

namespace tandem {

struct ClientResponse {
  int status = 0;  // 0: the server closed the connection
  std::map<std::string, std::string> fields;
  std::string body;
};

class HttpClient {
 public:
  explicit HttpClient(const ListenAddress& address) {
    sockaddr_un local{};
    sockaddr_in internet{};
    if (address.is_unix()) {
      local.sun_family = AF_UNIX;
      address.unix_path.copy(local.sun_path, sizeof local.sun_path - 1);
      open(AF_UNIX, reinterpret_cast<sockaddr*>(&local), sizeof local);
    } else {
      internet.sin_family = AF_INET;
      internet.sin_port = htons(static_cast<std::uint16_t>(address.port));
      inet_pton(AF_INET, address.host.c_str(), &internet.sin_addr);
      open(AF_INET, reinterpret_cast<sockaddr*>(&internet), sizeof internet);
    }
  }

  // False: the server has closed the connection.
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void finish_writing() const { ::shutdown(socket_.get(), SHUT_WR); }

  // The next response. Interim ones have status 100.
  ClientResponse read(bool answers_head = false) {
    ClientResponse response;
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos)
      if (!read_more()) return {};
    std::string head = input_.substr(0, end + 2);
    input_.erase(0, end + 4);
    response.status = std::stoi(head.substr(9, 3));
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t line_end = head.find("\r\n", at), colon = head.find(": ", at);
      response.fields[lower_case(head.substr(at, colon - at))] = head.substr(colon + 2, line_end - colon - 2);
      at = line_end + 2;
    }
    const auto length = response.fields.find("content-length");
    if (length == response.fields.end() || answers_head) return response;
    const std::size_t bytes = std::stoul(length->second);
    while (input_.size() < bytes)
      if (!read_more()) return {};
    response.body = input_.substr(0, bytes);
    input_.erase(0, bytes);
    return response;
  }

  ClientResponse ask(std::string_view request) {
    write(request);
    return read();
  }
  // Of a response without a length: what comes until `end`, with it; empty if the connection is closed
  // before.
  std::string read_until(std::string_view end) {
    std::size_t found = 0;
    while ((found = input_.find(end)) == std::string::npos)
      if (!read_more()) return {};
    std::string text = input_.substr(0, found + end.size());
    input_.erase(0, text.size());
    return text;
  }
  // Waits until the server has closed the connection.
  bool is_closed() { return input_.empty() && !read_more(); }

 private:
  void open(int family, const sockaddr* address, socklen_t length) {
    socket_ = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), address, length), 0) << std::strerror(errno);
  }
  bool read_more() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count > 0) input_.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  Descriptor socket_;
  std::string input_;
};

inline std::string get_request(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n";
}

inline std::string post_request(std::string_view target, std::string_view body,
                                std::string_view fields = "") {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(fields) + "\r\n" + std::string(body);
}

}  // namespace tandem
