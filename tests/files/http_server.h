// An HTTP server on the loopback interface for tests, with optional range requests, redirects and connections
// that break.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tandem {

class HttpServer {
 public:
  struct Page {
    std::string body;
    bool ranges = true;
    std::size_t break_after = std::string::npos;  // the connection breaks after that many bytes of the body
    std::string redirect = {};                    // to another path, instead of a body
    bool stays_open = false;                      // until the client leaves
  };

  explicit HttpServer(std::map<std::string, Page> pages)
      : pages_(std::move(pages)), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    setenv("no_proxy", "127.0.0.1", 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  void set(const std::string& path, const Page& page) {
    const std::lock_guard lock(mutex_);
    pages_[path] = page;
  }
  // "/path" or "/path from 100", in order of arrival.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      const int client = accept(socket_, nullptr, nullptr);
      if (client < 0) return;
      std::string request;
      char piece[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = read(client, piece, sizeof piece);
        if (got <= 0) break;
        request.append(piece, static_cast<std::size_t>(got));
      }
      const std::string answer = answer_to(request);
      EXPECT_EQ(send(client, answer.data(), answer.size(), MSG_NOSIGNAL), ssize_t(answer.size()));
      while (stays_open_ && read(client, piece, sizeof piece) > 0) continue;
      close(client);
    }
  }

  std::string answer_to(const std::string& request) {
    const std::lock_guard lock(mutex_);
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const std::size_t range = request.find("Range: bytes=");
    const std::size_t from = range == std::string::npos ? 0 : std::stoul(request.substr(range + 13));
    requests_.push_back(from > 0 ? path + " from " + std::to_string(from) : path);
    const auto page = pages_.find(path);
    if (page == pages_.end())
      return "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const auto& [body, ranges, break_after, redirect, stays_open] = page->second;
    stays_open_ = stays_open;
    if (!redirect.empty())
      return "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: " + redirect +
             "\r\n\r\n";
    if (ranges && from > 0 && from >= body.size())
      return "HTTP/1.1 416 Range Not Satisfiable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const bool part = ranges && from > 0;
    const std::string rest = part ? body.substr(from) : body;
    std::string head = part ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n";
    if (part)
      head += "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(body.size() - 1) + "/" +
              std::to_string(body.size()) + "\r\n";
    head += "Connection: close\r\nContent-Length: " + std::to_string(rest.size()) + "\r\n\r\n";
    return head + rest.substr(0, break_after);
  }

  std::map<std::string, Page> pages_;
  std::vector<std::string> requests_;
  std::mutex mutex_;
  bool stays_open_ = false;  // the page of the request
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tandem
