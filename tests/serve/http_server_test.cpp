// The event loop with real sockets and a clock of the test: no test waits for time to pass.
#include "tandem/serve/http_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <condition_variable>
#include <thread>

#include "tests/image/test_files.h"
#include "tests/serve/http_client.h"

namespace tandem {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

// A server whose paths are /echo (the body), /held (answered by release()) and /refused (before the body).
class HttpServerTest : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}, const std::string& address = "127.0.0.1:0") {
    options.clock_ns = [this] { return now_ns_.load(); };
    HttpHandlers handlers{
        .check = [](const HttpRequest& request) -> std::optional<HttpResponse> {
          if (request.path == "/refused") return error_response(403, "refused");
          return std::nullopt;
        },
        .handle =
            [this](HttpRequest request, HttpReply reply) {
              const std::lock_guard lock(mutex_);
              if (request.path == "/held")
                held_.push_back(std::move(reply));
              else if (request.path == "/throws")
                throw std::runtime_error("handler");
              else
                reply.send({.content_type = "text/plain", .body = request.path + ":" + request.body});
              arrived_.notify_all();
            },
        .observe = [this](std::string_view, int status, std::int64_t) { last_status_ = status; }};
    server_ = std::make_unique<HttpServer>(ListenSocket(parse_listen_address(address)), std::move(handlers),
                                           options);
    thread_ = std::thread([this] {
      server_->run();
      ended_ = true;
    });
  }
  ~HttpServerTest() override {
    if (!thread_.joinable()) return;
    server_->stop();
    server_->stop();
    thread_.join();
  }

  HttpClient client() const { return HttpClient(server_->address()); }
  void pass(std::int64_t seconds) {
    now_ns_ += seconds * second_ns;
    server_->wake();
  }
  void wait_for_held(std::size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return held_.size() >= count; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    for (HttpReply& reply : held_) reply.send({.content_type = "text/plain", .body = "released"});
    held_.clear();
  }
  void wait_for_connections(std::size_t count) const {
    while (server_->connection_count() != count) std::this_thread::yield();
  }

  std::atomic<std::int64_t> now_ns_{second_ns};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<HttpReply> held_;
  std::atomic<int> last_status_{0};
  std::atomic<bool> ended_{false};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, Requests_OnOneConnectionAreAnsweredInOrder) {
  start();
  HttpClient one = client();
  EXPECT_EQ(one.ask(get_request("/a")).body, "/a:");
  EXPECT_EQ(one.ask(post_request("/echo", "hello")).body, "/echo:hello");
  EXPECT_EQ(
      one.ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
          .body,
      "/echo:abc");
  one.write("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
  const ClientResponse head = one.read(true);
  EXPECT_EQ(head.fields.at("content-length"), "3");
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(one.ask(get_request("/end", "Connection: close\r\n")).fields.at("connection"), "close");
  EXPECT_TRUE(one.is_closed());
}

TEST_F(HttpServerTest, Pipelined_AreAnsweredInOrder) {
  start();
  HttpClient one = client();
  std::string all;
  constexpr int count = 2000;  // also those that are refused at once: no recursion
  for (int i = 0; i < count; ++i) all += get_request(i % 2 == 0 ? "/" + std::to_string(i) : "/refused");
  std::thread writer([&] { one.write(all); });
  for (int i = 0; i < count; ++i) {
    const ClientResponse response = one.read();
    ASSERT_EQ(response.status, i % 2 == 0 ? 200 : 403);
    ASSERT_TRUE(i % 2 == 1 || response.body == "/" + std::to_string(i) + ":") << response.body;
  }
  writer.join();
}

TEST_F(HttpServerTest, RequestsInPieces_AreAnswered) {
  start();
  HttpClient one = client();
  for (const char byte : post_request("/echo", "hello")) one.write({&byte, 1});
  EXPECT_EQ(one.read().body, "/echo:hello");
}

TEST_F(HttpServerTest, LargeBodiesAndAnswers_AreWhole) {
  start();
  HttpClient one = client();
  std::string body(20 << 20, 'x');
  for (std::size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
  EXPECT_TRUE(one.ask(post_request("/echo", body)).body == "/echo:" + body);
}

TEST_F(HttpServerTest, Smuggling_IsRefusedAndTheConnectionClosed) {
  start();
  HttpClient one = client();
  const ClientResponse refusal = one.ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
      get_request("/secret"));
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.fields.at("connection"), "close");
  EXPECT_TRUE(one.is_closed());
}

TEST_F(HttpServerTest, HugeLength_IsRefusedBeforeTheBody) {
  start();
  HttpClient one = client();
  EXPECT_EQ(one.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10737418240\r\n\r\n").status, 413);
  HttpClient two = client();
  const ClientResponse refusal =
      two.ask("POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(refusal.status, 403);
  EXPECT_TRUE(two.is_closed());
}

TEST_F(HttpServerTest, ExpectContinue_IsAnsweredUnlessRefused) {
  start();
  HttpClient one = client();
  const std::string fields = " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(one.ask("POST /echo" + fields).status, 100);
  EXPECT_EQ(one.ask("abc").body, "/echo:abc");
  HttpClient two = client();
  EXPECT_EQ(two.ask("POST /refused" + fields).status, 403);
}

TEST_F(HttpServerTest, SlowClients_AreEndedByTheirDeadlines) {
  start();
  HttpClient idle = client(), header = client(), body = client(), held = client();
  wait_for_connections(4);
  held.write(get_request("/held"));
  wait_for_held(1);
  header.write("GET / HT");
  body.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(body.read().status, 100);
  HttpClient probe = client();  // an answer proves that the bytes above were read
  EXPECT_EQ(probe.ask(get_request("/a", "Connection: close\r\n")).status, 200);
  pass(11);  // more than the time for a header
  EXPECT_EQ(header.read().status, 408);
  EXPECT_TRUE(header.is_closed());
  body.write("abc");  // a byte now and then does not extend the time
  pass(50);
  EXPECT_EQ(body.read().status, 408);
  EXPECT_TRUE(idle.is_closed());
  release();  // the handler's time is not the client's
  EXPECT_EQ(held.read().body, "released");
}

TEST_F(HttpServerTest, ClientThatDoesNotRead_IsClosed) {
  start();
  HttpClient one = client();
  one.write(post_request("/echo", std::string(30 << 20, 'x')));
  while (last_status_ == 0) std::this_thread::yield();
  while (server_->connection_count() > 0) pass(31);
}

TEST_F(HttpServerTest, TooManyConnections_AreTold) {
  start({.max_connections = 2});
  HttpClient one = client(), two = client();
  wait_for_connections(2);
  HttpClient three = client();
  const ClientResponse refusal = three.read();
  EXPECT_EQ(refusal.status, 503);
  EXPECT_EQ(refusal.fields.at("retry-after"), "1");
  EXPECT_EQ(one.ask(get_request("/a")).status, 200);
}

TEST_F(HttpServerTest, ManyIdleConnections_DoNotDisturb) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2100) GTEST_SKIP() << "too few descriptors";
  start({.max_connections = 2000});
  std::vector<HttpClient> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(client());
  wait_for_connections(1000);
  HttpClient one = client();
  EXPECT_EQ(one.ask(get_request("/a")).status, 200);
  pass(59);
  EXPECT_EQ(one.ask(get_request("/a")).status, 200);
  pass(2);
  for (HttpClient& other : idle) EXPECT_TRUE(other.is_closed());
  EXPECT_EQ(one.ask(get_request("/a")).status, 200);
  EXPECT_EQ(server_->connection_count(), 1u);
}

TEST_F(HttpServerTest, BodiesTogether_AreLimited) {
  start({.max_buffered = 100});
  HttpClient one = client(), two = client(), three = client();
  one.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(one.read().status, 100);
  EXPECT_EQ(two.ask(post_request("/echo", std::string(50, 'x'))).status, 503);
  EXPECT_EQ(three.ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n").status,
            503);
  EXPECT_EQ(one.ask(std::string(60, 'x')).status, 200);
  HttpClient four = client();  // the bytes were given back
  for (int i = 0; i < 5; ++i) EXPECT_EQ(four.ask(post_request("/echo", std::string(90, 'x'))).status, 200);
}

TEST_F(HttpServerTest, ClientThatLeaves_CostsNothing) {
  start();
  {
    HttpClient one = client(), half = client(), reset = client();
    one.write(get_request("/held"));
    half.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    wait_for_held(1);
  }
  release();
  wait_for_connections(0);
  HttpClient two = client();
  EXPECT_EQ(two.ask(get_request("/a")).status, 200);
}

TEST_F(HttpServerTest, HandlerThatThrows_GivesStatus500) {
  start();
  HttpClient one = client();
  EXPECT_EQ(one.ask(get_request("/throws")).status, 500);
  EXPECT_EQ(one.ask(get_request("/a")).status, 200);
}

TEST_F(HttpServerTest, Stop_AnswersWhatHasBegun) {
  start();
  HttpClient idle = client(), held = client();
  held.write(get_request("/held"));
  wait_for_held(1);
  wait_for_connections(2);
  server_->stop();
  EXPECT_TRUE(idle.is_closed());
  release();
  const ClientResponse last = held.read();
  EXPECT_EQ(last.body, "released");
  EXPECT_EQ(last.fields.at("connection"), "close");
  EXPECT_TRUE(held.is_closed());
  { const HttpClient gone = std::move(held); }
  thread_.join();
}

TEST_F(HttpServerTest, Stop_DoesNotWaitForever) {
  start();
  HttpClient held = client();
  held.write(get_request("/held"));
  wait_for_held(1);
  server_->stop();
  while (!ended_) pass(31);
  thread_.join();
  EXPECT_TRUE(held.is_closed());
  release();  // nobody is there any more
}

TEST_F(HttpServerTest, TwoServersAtOneAddress_GiveOneClearLine) {
  start();
  const std::string address = server_->address().to_string();
  EXPECT_EQ(error_text([&] { ListenSocket second(parse_listen_address(address)); }),
            "[serve] " + address + " is in use: another program listens there");
}

TEST_F(HttpServerTest, UnixSocket_IsPrivateAndRemoved) {
  const TempFolder folder;
  const std::string path = (folder / "s").string(), address = "unix:" + path;
  start({}, address);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(client().ask(get_request("/a")).status, 200);
  EXPECT_EQ(error_text([&] { ListenSocket second(parse_listen_address(address)); }),
            "[serve] " + address + " is in use: another program listens there");
  server_->stop();
  thread_.join();
  EXPECT_FALSE(std::filesystem::exists(path));
  put_bytes(path, "a file");
  EXPECT_EQ(error_text([&] { ListenSocket second(parse_listen_address(address)); }),
            "[serve] " + path + ": expected no file or a socket, got another file");
}

TEST(ListenAddress, Text_IsParsedOrRefused) {
  EXPECT_EQ(parse_listen_address("8080").to_string(), "127.0.0.1:8080");
  EXPECT_EQ(parse_listen_address("localhost:1").to_string(), "127.0.0.1:1");
  EXPECT_EQ(parse_listen_address("[::1]:80").to_string(), "[::1]:80");
  EXPECT_TRUE(parse_listen_address("[::1]:80").is_local());
  EXPECT_TRUE(parse_listen_address("unix:/a/b").is_local());
  EXPECT_FALSE(parse_listen_address("0.0.0.0:80").is_local());
  EXPECT_TRUE(parse_listen_address("0.0.0.0:80").is_wildcard());
  for (const char* const bad : {"", "host:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                                "1.2.3:80", "unix:", "[::1:80"})
    EXPECT_EQ(error_text([&] { parse_listen_address(bad); }),
              std::string("[serve] expected ") +
                  (std::string_view(bad) == "unix:" ? "unix:PATH"
                                                    : "ADDRESS:PORT with a numeric address, or unix:PATH") +
                  ", got '" + bad + "'");
}

TEST_F(HttpServerTest, Stream_ComesInPartsAndEndsTheConnection) {
  start();
  HttpClient one = client();
  one.write(get_request("/held"));
  wait_for_held(1);
  {
    HttpStream stream = held_.front().begin({.content_type = "text/event-stream", .body = "first;"});
    held_.clear();
    const ClientResponse head = one.read();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.fields.count("content-length"), 0u);
    EXPECT_EQ(head.fields.at("connection"), "close");
    EXPECT_EQ(one.read_until(";"), "first;");
    for (const char* const part : {"second;", "third;"}) {
      stream.send(part);
      EXPECT_EQ(one.read_until(";"), part);
    }
    pass(3600);  // nothing to send is no reason to close
    stream.send("later;");
    EXPECT_EQ(one.read_until(";"), "later;");
    EXPECT_TRUE(stream.is_open());
    EXPECT_EQ(server_->connection_count(), 1u);
  }
  EXPECT_TRUE(one.is_closed());
}

TEST_F(HttpServerTest, StreamOfAClientThatHasGone_IsNotOpen) {
  start();
  std::optional<HttpStream> stream;
  {
    HttpClient one = client();
    one.write(get_request("/held"));
    wait_for_held(1);
    stream.emplace(held_.front().begin({.body = "begin;"}));
    held_.clear();
    EXPECT_NE(one.read_until("begin;"), "");
  }
  wait_for_connections(0);
  EXPECT_FALSE(stream->is_open());
  stream->send("nobody reads this");
}

TEST_F(HttpServerTest, StreamThatIsNotRead_IsClosedByItsSizeAndByTime) {
  for (const bool by_size : {true, false}) {
    SCOPED_TRACE(by_size);
    start({.max_stream_buffer = by_size ? std::size_t{1} << 20 : std::size_t{1} << 30});
    HttpClient one = client();
    one.write(get_request("/held"));
    wait_for_held(1);
    HttpStream stream = held_.front().begin({});
    held_.clear();
    const std::string part(1 << 20, 'x');
    while (by_size && stream.is_open()) stream.send(part);  // until the socket takes no more
    for (int i = 0; !by_size && i < 64; ++i) stream.send(part);
    while (stream.is_open()) pass(31);
    wait_for_connections(0);
    server_->stop();
    server_->stop();
    thread_.join();
  }
}

TEST_F(HttpServerTest, Stop_EndsStreamsAtOnce) {
  start();
  HttpClient one = client();
  one.write(get_request("/held"));
  wait_for_held(1);
  HttpStream stream = held_.front().begin({.body = "begin;"});
  held_.clear();
  one.read_until("begin;");
  server_->stop();
  EXPECT_TRUE(one.is_closed());
  thread_.join();
  EXPECT_FALSE(stream.is_open());
}

}  // namespace
}  // namespace tandem
