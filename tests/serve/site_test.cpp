// Routes, tokens, names and other sites.
#include "tandem/serve/site.h"

#include <gtest/gtest.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

const std::string token = "0123456789abcdef";

Site make_site(SiteRules rules) {
  const auto handle = [](HttpRequest, HttpReply) {};
  return Site({{HttpMethod::get, "/open", Access::open, handle},
               {HttpMethod::get, "/closed", Access::token, handle},
               {HttpMethod::post, "/change", Access::token, handle}},
              std::move(rules));
}

HttpRequest request(HttpMethod method, std::string path, std::vector<HttpField> fields = {}) {
  HttpRequest made{.method = method, .path = std::move(path), .fields = std::move(fields)};
  if (!made.field("host")) made.fields.push_back({"host", "localhost:8080"});
  return made;
}

int status(const Site& site, const HttpRequest& asked) {
  const auto refusal = site.check(asked);
  return refusal ? refusal->status : 200;
}

const ListenAddress loopback{.host = "127.0.0.1", .port = 8080};

TEST(Site, RouteWithoutAccessRule_IsRefused) {
  EXPECT_THROW(Site({{.path = "/a", .handle = [](HttpRequest, HttpReply) {}}}, {}), InternalError);
}

TEST(Site, Routes_AreFoundByTheirExactPath) {
  const Site site = make_site(site_rules(loopback, {}, ""));
  EXPECT_EQ(status(site, request(HttpMethod::get, "/open")), 200);
  EXPECT_EQ(status(site, request(HttpMethod::head, "/open")), 200);
  EXPECT_EQ(status(site, request(HttpMethod::post, "/open")), 405);
  EXPECT_EQ(status(site, request(HttpMethod::get, "/change")), 405);
  EXPECT_EQ(site.check(request(HttpMethod::get, "/change"))->fields[0].value, "POST");
  for (const char* const path :
       {"/", "/open/", "/Open", "//open", "/./open", "/../open", "/%6fpen", "/open%00", "/../../etc/passwd",
        "/..%2f..%2fetc/passwd", "/closed/../open", "/open;a"})
    EXPECT_EQ(status(site, request(HttpMethod::get, path)), 404) << path;
}

TEST(Site, Token_IsNeededWhereTheRouteSaysSo) {
  const Site site = make_site(site_rules(loopback, {}, token));
  const auto with = [&](const std::string& value) {
    return status(site, request(HttpMethod::get, "/closed", {{"authorization", value}}));
  };
  EXPECT_EQ(status(site, request(HttpMethod::get, "/open")), 200);
  EXPECT_EQ(status(site, request(HttpMethod::get, "/closed")), 401);
  EXPECT_EQ(site.check(request(HttpMethod::get, "/closed"))->fields[0].value, "Bearer");
  EXPECT_EQ(with("Bearer " + token), 200);
  EXPECT_EQ(with("bearer " + token), 200);
  for (const std::string& bad :
       {std::string(), std::string("Bearer "), "Bearer " + token + "x", "Bearer x" + token,
        "Bearer " + token.substr(1), "Bearer " + token + token, "Basic " + token, token})
    EXPECT_EQ(with(bad), 401) << bad;
  HttpRequest in_query = request(HttpMethod::get, "/closed");
  in_query.query = "token=" + token;
  EXPECT_EQ(status(site, in_query), 401);
}

TEST(Site, HostOfAnotherName_IsRefused) {
  const auto with = [](const Site& site, const std::string& host) {
    return status(site, request(HttpMethod::get, "/open", {{"host", host}}));
  };
  const Site local = make_site(site_rules(loopback, {"Tandem.example"}, ""));
  for (const char* const good :
       {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "tandem.example"})
    EXPECT_EQ(with(local, good), 200) << good;
  for (const char* const bad :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost:80:80",
        "localhost:x", "[::1", "[::1]x", ":80", "localhost@evil"})
    EXPECT_EQ(with(local, bad), 421) << bad;
  HttpRequest none{.path = "/open"};
  EXPECT_EQ(status(local, none), 421);
  const Site everywhere = make_site(site_rules({.host = "0.0.0.0", .port = 80}, {}, token));
  EXPECT_EQ(with(everywhere, "10.1.2.3:80"), 200);  // an address cannot be rebound
  EXPECT_EQ(with(everywhere, "evil.example"), 421);
}

TEST(Site, PagesOfOtherSites_MayNotPost) {
  const Site site = make_site(site_rules(loopback, {}, ""));
  const auto with = [&](std::vector<HttpField> fields) {
    return status(site, request(HttpMethod::post, "/change", std::move(fields)));
  };
  EXPECT_EQ(with({}), 200);
  EXPECT_EQ(with({{"origin", "http://localhost:8080"}}), 200);
  EXPECT_EQ(with({{"origin", "https://localhost:8080"}, {"sec-fetch-site", "same-origin"}}), 200);
  for (const char* const bad :
       {"null", "", "http://localhost", "http://localhost:80801", "http://evil.example",
        "http://localhost:8080.evil.example", "ftp://localhost:8080"})
    EXPECT_EQ(with({{"origin", bad}}), 403) << bad;
  EXPECT_EQ(with({{"sec-fetch-site", "cross-site"}}), 403);
  EXPECT_EQ(with({{"sec-fetch-site", "same-site"}}), 403);
}

TEST(Site, TokenFile_IsReadOrRefused) {
  const TempFolder folder;
  const std::string path = (folder / "token").string();
  put_bytes(path, token + "\r\n");
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(read_token_file(path), token);
  for (const std::string& bad : {std::string(), std::string("short"), token + "\n" + token, token + " ",
                                 std::string(1025, 'x'), token + "\xc3\xa4"}) {
    put_bytes(path, bad);
    EXPECT_EQ(error_text([&] { read_token_file(path); }),
              "[serve] " + path + ": expected one line of 16 to 1024 visible ASCII characters");
  }
}

TEST(Site, Comparison_IsExact) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  for (const char* const other : {"", "abd", "bbc", "ab", "abcd", "abcabc"})
    EXPECT_FALSE(equal_in_constant_time("abc", other)) << other;
}

}  // namespace
}  // namespace tandem
