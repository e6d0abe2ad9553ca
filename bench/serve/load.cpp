// serve_load ADDRESS FOLDER [CLIENTS [SECONDS]]: sends the images of a folder to a running `tandem serve`
// over connections that are kept, and writes requests/s and latencies as a line of JSON. serve_load jpeg FROM
// TO: writes the images of a folder as JPEGs (4:2:0, quality 90). bench/serving starts both.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/data/image_folder.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/process/descriptor.h"
#include "tandem/serve/listen_socket.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

Descriptor connect_to(const ListenAddress& address) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<std::uint16_t>(address.port));
  ::inet_pton(AF_INET, address.host.c_str(), &target.sin_addr);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0)
    fail("[load] cannot connect to {}: {}", address.to_string(), errno_message(errno));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

// Sends one request and reads its response; returns the status.
int ask(int socket, const std::string& request, std::string& input) {
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t count = ::send(socket, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    check(count > 0, "[load] the server has closed a connection");
    sent += static_cast<std::size_t>(count);
  }
  input.clear();
  std::size_t needed = 0;
  while (needed == 0 || input.size() < needed) {
    char buffer[16384];
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    check(count > 0, "[load] the server has closed a connection");
    input.append(buffer, static_cast<std::size_t>(count));
    const std::size_t end = input.find("\r\n\r\n"), length = input.find("Content-Length: ");
    if (needed == 0 && end != std::string::npos)
      needed = end + 4 + std::strtoul(input.c_str() + length + 16, nullptr, 10);
  }
  return std::atoi(input.c_str() + 9);
}

struct Client {
  std::vector<double> ms;
  std::size_t refused = 0, failed = 0;
};

void run_client(const ListenAddress& address, const std::vector<std::string>& requests, std::size_t first,
                Clock::time_point warm, Clock::time_point end, Client& client) {
  const Descriptor socket = connect_to(address);
  std::string input;
  for (std::size_t i = first; Clock::now() < end; ++i) {
    const auto begin = Clock::now();
    const int status = ask(socket.get(), requests[i % requests.size()], input);
    const auto now = Clock::now();
    if (now < warm || now > end) continue;  // counted by their ends: batches begin and end together
    client.refused += status == 503 ? 1 : 0;
    client.failed += status != 503 && status != 200 ? 1 : 0;
    if (status == 200) client.ms.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
  }
}

void measure(const std::vector<std::string>& words) {
  const ListenAddress address = parse_listen_address(words.at(0));
  const auto count = static_cast<std::size_t>(words.size() > 2 ? std::stoll(words[2]) : 16);
  const double seconds = words.size() > 3 ? std::stod(words[3]) : 10;
  std::vector<std::string> requests;
  for (const std::filesystem::path& file : list_images(words.at(1)).files) {
    const std::string bytes = read_file("load", file, std::uint64_t{1} << 30);
    requests.push_back(fmt::format("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                   "application/octet-stream\r\nContent-Length: {}\r\n\r\n",
                                   bytes.size()) +
                       bytes);
  }
  check(!requests.empty(), "[load] expected images in {}, got none", words.at(1));
  const auto warm = Clock::now() + std::chrono::seconds(2);
  const auto end = warm + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<Client> clients(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        run_client(address, requests, i * requests.size() / count, warm, end, clients[i]);
      } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        ++clients[i].failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> ms;
  std::size_t refused = 0, failed = 0;
  for (const Client& client : clients) {
    ms.insert(ms.end(), client.ms.begin(), client.ms.end());
    refused += client.refused;
    failed += client.failed;
  }
  check(!ms.empty(), "[load] no request was answered");
  std::ranges::sort(ms);
  fmt::print(
      R"({{"clients": {}, "requests_per_second": {:.1f}, "p50_ms": {:.2f}, "p99_ms": {:.2f}, "answered": {}, )"
      R"("refused": {}, "failed": {}}})"
      "\n",
      count, static_cast<double>(ms.size()) / seconds, ms[ms.size() / 2], ms[ms.size() * 99 / 100], ms.size(),
      refused, failed);
}

void write_jpegs(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  std::size_t index = 0;
  for (const std::filesystem::path& file : list_images(from).files) {
    const std::vector<std::uint8_t> jpeg = write_jpeg(load_image(file), {});
    write_file("load", to / fmt::format("{:05}.jpg", index++), std::as_bytes(std::span(jpeg)));
  }
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  try {
    const std::vector<std::string> all(words + 1, words + count);
    tandem::check(all.size() >= 2, "usage: serve_load ADDRESS FOLDER [CLIENTS [SECONDS]] | jpeg FROM TO");
    if (all[0] == "jpeg")
      tandem::write_jpegs(all.at(1), all.at(2));
    else
      tandem::measure(all);
  } catch (const std::exception& error) {
    fmt::print(stderr, "serve_load: error: {}\n", error.what());
    return 1;
  }
}
