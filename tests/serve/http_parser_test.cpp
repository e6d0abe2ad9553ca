// The HTTP parser: what it reads, what it refuses, and that the division into pieces makes no difference.
#include "tandem/serve/http_parser.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/serve/fuzz_inputs.h"

namespace tandem {
namespace {

using Stage = HttpParser::Stage;

// The outcome of parsing as text, to compare ways of dividing the same bytes.
struct Parsed {
  Stage stage = Stage::head;
  int status = 0;
  std::size_t used = 0;
  std::string path, query, body;
  std::size_t fields = 0;
  bool operator==(const Parsed&) const = default;
};

// Feeds `bytes` in pieces of `piece` bytes, the first of them of `first`.
Parsed parse(std::string_view bytes, std::size_t first, std::size_t piece, const HttpLimits& limits = {}) {
  HttpParser parser(limits);
  std::size_t used = 0, next = first;
  while (used < bytes.size() && parser.stage() != Stage::complete && parser.stage() != Stage::failed) {
    const std::size_t end = std::min(std::max(next, used + 1), bytes.size());
    used += parser.feed(bytes.substr(used, end - used));
    if (used >= next) next = used + piece;
  }
  const HttpRequest& request = parser.request();
  const bool is_valid = parser.stage() == Stage::complete;
  return {parser.stage(),
          parser.status(),
          used,
          is_valid ? request.path : "",
          is_valid ? request.query : "",
          is_valid ? request.body : "",
          is_valid ? request.fields.size() : 0};
}

Parsed parse(std::string_view bytes, const HttpLimits& limits = {}) {
  return parse(bytes, bytes.size(), bytes.size(), limits);
}

std::string get(std::string_view fields) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
std::string post(std::string_view fields, std::string_view body) {
  return "POST /p HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

const std::vector<std::string> good_requests{
    get(""),
    "HEAD /a/b?x=1&y=%20 HTTP/1.1\r\nHOST:localhost:8080\r\nAccept: */*\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    get("X: \t padded \t\r\nEmpty:\r\nHigh: \xc3\xa4\r\n"),
    post("Content-Length: 5\r\n", "hello"),
    post("Content-Length: 0\r\n", ""),
    post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n"),
    post("transfer-encoding: Chunked\r\nExpect: 100-continue\r\n", "0\r\n\r\n"),
};

TEST(HttpParser, Request_IsRead) {
  HttpParser parser;
  const std::string text = good_requests[1];
  EXPECT_EQ(parser.feed(text), text.size());
  ASSERT_EQ(parser.stage(), Stage::complete);
  EXPECT_EQ(parser.request().method, HttpMethod::head);
  EXPECT_EQ(parser.request().path, "/a/b");
  EXPECT_EQ(parser.request().query, "x=1&y=%20");
  EXPECT_EQ(parser.request().field("host"), "localhost:8080");
  EXPECT_EQ(parser.request().field("accept"), "*/*");
  EXPECT_FALSE(parser.request().field("accep"));
  EXPECT_TRUE(parser.request().keep_alive);
  EXPECT_EQ(parse(good_requests[3]).fields, 4u);
  EXPECT_EQ(parse(good_requests[4]).body, "hello");
  EXPECT_EQ(parse(good_requests[6]).body, "hello0123456789");
}

TEST(HttpParser, Connection_IsKeptUnlessAskedOtherwise) {
  const auto keeps = [](const std::string& text) {
    HttpParser parser;
    parser.feed(text);
    EXPECT_EQ(parser.stage(), Stage::complete);
    return parser.request().keep_alive;
  };
  EXPECT_TRUE(keeps(get("")));
  EXPECT_FALSE(keeps(get("Connection: Close\r\n")));
  EXPECT_FALSE(keeps(get("Connection: TE, close\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
}

TEST(HttpParser, EverySplit_GivesTheSame) {
  std::vector<std::string> all = good_requests;
  for (const char* const bad :
       {"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n"})
    all.emplace_back(bad);
  all.push_back(post("Transfer-Encoding: chunked\r\n", "5;x=y\r\nhello\r\n0\r\n\r\n"));
  for (const std::string& text : all) {
    const std::string bytes = text + "GET /next";  // belongs to the next request
    const Parsed whole = parse(bytes);
    for (std::size_t split = 1; split < bytes.size(); ++split)
      EXPECT_EQ(parse(bytes, split, bytes.size()), whole) << text << " at " << split;
    EXPECT_EQ(parse(bytes, 1, 1), whole) << text;
    EXPECT_TRUE(whole.stage != Stage::complete || whole.used == text.size()) << text;
  }
}

TEST(HttpParser, HeaderAndBody_AreTwoStages) {
  HttpParser parser;
  const std::string text = post("Content-Length: 3\r\n", "abcNEXT");
  const std::size_t head = parser.feed(text);
  EXPECT_EQ(parser.stage(), Stage::body);
  EXPECT_EQ(text.substr(head), "abcNEXT");
  EXPECT_EQ(parser.announced_body(), 3);
  EXPECT_EQ(parser.feed(text.substr(head)), 3u);
  EXPECT_EQ(parser.stage(), Stage::complete);
  EXPECT_EQ(parser.feed("x"), 0u);
  parser.reset();
  EXPECT_FALSE(parser.has_begun());
  EXPECT_EQ(parser.feed(get("")), get("").size());
  EXPECT_EQ(parser.stage(), Stage::complete);
}

TEST(HttpParser, AmbiguousRequests_AreRefused) {
  const std::vector<std::pair<int, std::string>> all{
      {400, "GET / HTTP/1.1\nHost: a\n\n"},                   // bare line feeds
      {400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"},  // a bare carriage return
      {400, get("X: a\r\n b\r\n")},                           // a folded line
      {400, get("X : a\r\n")},                                // a space before the colon
      {400, get(" X: a\r\n")},
      {400, get("X\r\n")},
      {400, get(": a\r\n")},
      {400, get(std::string_view("X: a\0b\r\n", 9))},
      {400, get("X: a\x7f\r\n")},
      {400, get("Host: b\r\n")},        // two hosts
      {400, "GET / HTTP/1.1\r\n\r\n"},  // none
      {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / a HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /\r\nHost: a\r\n\r\n"},
      {400, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "G T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTPX1.1\r\nHost: a\r\n\r\n"},
      {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {501, "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {501, "get / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")},
      {400, post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
      {400, post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
      {400, post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
      {400, post("Transfer-Encoding: identity\r\n", "")},
      {400, post("Transfer-Encoding:\r\n", "")},
      {400, post("Content-Length: +3\r\n", "abc")},
      {400, post("Content-Length: -3\r\n", "abc")},
      {400, post("Content-Length: 0x3\r\n", "abc")},
      {400, post("Content-Length: 3, 3\r\n", "abc")},
      {400, post("Content-Length:\r\n", "abc")},
      {411, post("", "")},
      {413, post("Content-Length: 10737418240\r\n", "")},
      {413, post("Content-Length: 99999999999999999999999999\r\n", "")},
      {417, post("Content-Length: 3\r\nExpect: 200-maybe\r\n", "")},
      {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {400, get("Content-Length: 3\r\n") + "abc"},  // a body of GET
      {400, get("Transfer-Encoding: chunked\r\n")},
  };
  for (const auto& [status, text] : all) {
    const Parsed parsed = parse(text);
    EXPECT_EQ(parsed.stage, Stage::failed) << text;
    EXPECT_EQ(parsed.status, status) << text;
  }
}

TEST(HttpParser, DamagedChunks_AreRefused) {
  for (const char* const body :
       {"\r\n\r\n", "g\r\n", "5 \r\nhello\r\n", "5;a=b\r\nhello\r\n", "5\nhello", "5\r\nhello!\r\n",
        "5\r\nhello\n", "-1\r\n", "0x5\r\n", "000000005\r\nhello\r\n", "0\r\nTrailer: x\r\n\r\n", "0\r\n\n",
        "5\r\rhello"})
    EXPECT_EQ(parse(post("Transfer-Encoding: chunked\r\n", body)).status, 400) << body;
  EXPECT_EQ(parse(post("Transfer-Encoding: chunked\r\n", "ffffffff\r\n")).status, 413);
}

TEST(HttpParser, Limits_HoldBeforeMemoryIsTaken) {
  const HttpLimits limits{.max_header = 200, .max_fields = 4, .max_body = 10, .max_framing = 30};
  EXPECT_EQ(parse(get("A: " + std::string(200, 'x') + "\r\n"), limits).status, 431);
  EXPECT_EQ(parse("GET /" + std::string(200, 'x'), limits).status, 431);
  EXPECT_EQ(parse(get("A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n"), limits).status, 431);
  EXPECT_EQ(parse(get("A: 1\r\nB: 1\r\nC: 1\r\n"), limits).stage, Stage::complete);
  EXPECT_EQ(parse(post("Content-Length: 11\r\n", ""), limits).status, 413);
  EXPECT_EQ(parse(post("Content-Length: 10\r\n", "0123456789"), limits).stage, Stage::complete);
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(parse(post(chunked, "a\r\n0123456789\r\n1\r\n"), limits).status, 413);
  EXPECT_EQ(parse(post(chunked, "a\r\n0123456789\r\n0\r\n\r\n"), limits).stage, Stage::complete);
  std::string crumbs;  // one byte each: six bytes for one
  for (int i = 0; i < 10; ++i) crumbs += "1\r\nx\r\n";
  EXPECT_EQ(parse(post(chunked, crumbs), limits).status, 400);
}

// What was read must be what was sent: a request that is accepted after damage has a body of its own length.
TEST(HttpParser, RandomDamage_NeverBreaksIt) {
  std::mt19937 random(19);
  const std::string_view words[] = {"\r\n",
                                    "\n",
                                    "\r",
                                    ":",
                                    " ",
                                    "\t",
                                    "\r\n\r\n",
                                    "chunked",
                                    "0\r\n",
                                    "ffff",
                                    "GET",
                                    "HTTP/1.1",
                                    "Content-Length: 3\r\n",
                                    "%",
                                    "?",
                                    "\x80"};
  std::size_t complete = 0, failed = 0;
  const int inputs = fuzz_inputs(200'000);
  for (int i = 0; i < inputs; ++i) {
    std::string text = good_requests[random() % good_requests.size()];
    for (auto n = random() % 4; n > 0; --n) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.insert(at, words[random() % std::size(words)]);
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          if (at < text.size()) text[at] = static_cast<char>(random());
          break;
        default:
          text += good_requests[random() % good_requests.size()];
      }
    }
    const HttpLimits limits{.max_header = 100, .max_body = 20, .max_framing = 64};
    const Parsed whole = parse(text, limits);
    ASSERT_EQ(parse(text, random() % (text.size() + 1), 1 + random() % 9, limits), whole) << text;
    ASSERT_LE(whole.used, text.size());
    ASSERT_LE(whole.body.size(), 20u);
    complete += whole.stage == Stage::complete ? 1 : 0;
    failed += whole.stage == Stage::failed ? 1 : 0;
  }
  EXPECT_GT(complete, static_cast<std::size_t>(inputs) / 10);
  EXPECT_GT(failed, static_cast<std::size_t>(inputs) / 10);
}

TEST(HttpMessage, Query_IsDecodedOrRefused) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(parse_query("model=a%20b&top=3&flag"), (Pairs{{"model", "a b"}, {"top", "3"}, {"flag", ""}}));
  EXPECT_EQ(parse_query(""), Pairs());
  for (const char* const bad : {"a=%", "a=%4", "a=%zz", "a=%+1", "a=1&a=2"})
    EXPECT_FALSE(parse_query(bad)) << bad;
  EXPECT_EQ(percent_decoded("%2e%2E/+"), "../ ");
}

TEST(HttpMessage, Response_HasSecurityFieldsAndNoBodyForHead) {
  const HttpResponse response{.content_type = "text/plain", .body = "hello", .fields = {{"X-A", "b"}}};
  const std::string text = serialize(response, true, true, 784111777);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n")) << text;
  for (const char* const part :
       {"Content-Length: 5\r\n", "Connection: keep-alive\r\n", "X-Content-Type-Options: nosniff\r\n",
        "Referrer-Policy: no-referrer\r\n", "X-A: b\r\n",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(text.find("Access-Control"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\nhello"));
  EXPECT_TRUE(serialize(response, false, false, 0).ends_with("\r\n\r\n"));
  EXPECT_EQ(error_response(400, "a \"b\"\xff").body, "{\"error\":\"a \\\"b\\\"\xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace tandem
