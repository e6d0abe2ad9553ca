#include "tandem/serve/site.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

bool answers(const Route& route, HttpMethod method) {
  return route.method == method || (route.method == HttpMethod::get && method == HttpMethod::head);
}

// "name" of "name:8080" and "::1" of "[::1]:8080"; none if it is neither.
std::optional<std::string> host_name(std::string_view host) {
  std::string_view name = host, port;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    name = host.substr(1, end - 1);
    port = host.substr(end + 1);
  } else if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    name = host.substr(0, colon);
    port = host.substr(colon);
  }
  const bool has_good_port =
      port.empty() || (port.starts_with(':') && port.find_first_not_of("0123456789", 1) == port.npos);
  if (!has_good_port || name.empty()) return std::nullopt;
  return lower_case(name);
}

// Whether a browser sent the request for a page of another site.
bool is_cross_site(const HttpRequest& request) {
  if (const auto site = request.field("sec-fetch-site"))
    if (*site != "same-origin" && *site != "none") return true;
  const auto origin = request.field("origin");
  if (!origin) return false;
  const std::string_view host = request.field("host").value_or("");
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin->starts_with(scheme) && equal_ignoring_case(origin->substr(scheme.size()), host)) return false;
  return true;
}

}  // namespace

SiteRules site_rules(const ListenAddress& address, const std::vector<std::string>& more, std::string token) {
  SiteRules rules{.token = std::move(token)};
  if (address.is_local() || address.is_wildcard()) rules.hosts = {"localhost", "127.0.0.1", "::1"};
  if (!address.is_unix()) rules.hosts.push_back(address.host);
  for (const std::string& name : more) rules.hosts.push_back(lower_case(name));
  rules.any_numeric_host = address.is_wildcard();
  return rules;
}

std::string read_token_file(const std::string& path) {
  constexpr std::size_t min_length = 16, max_length = 1024;
  std::string token = read_file("serve", path, 2 * max_length);
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  const bool is_visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  check(is_visible && token.size() >= min_length && token.size() <= max_length,
        "[serve] {}: expected one line of {} to {} visible ASCII characters", path, min_length, max_length);
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IRGRP | S_IROTH)) != 0)
    print_message("Warning: {} can be read by other users; chmod 600 makes it private\n", path);
  return token;
}

bool equal_in_constant_time(std::string_view secret, std::string_view given) {
  unsigned difference = secret.size() == given.size() ? 0 : 1;
  const std::string_view other = given.empty() ? std::string_view("\0", 1) : given;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    difference |= static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(other[i % other.size()]);
    asm volatile("" : "+r"(difference));  // the compiler must not stop early
  }
  return difference == 0;
}

Site::Site(std::vector<Route> routes, SiteRules rules)
    : routes_(std::move(routes)), rules_(std::move(rules)) {
  for (const Route& route : routes_)
    expect(route.access != Access::unset && route.handle && route.path.starts_with('/'));
}

bool Site::is_allowed_host(const HttpRequest& request) const {
  const auto name = host_name(request.field("host").value_or(""));
  if (!name) return false;
  return std::ranges::find(rules_.hosts, *name) != rules_.hosts.end() ||
         (rules_.any_numeric_host && is_numeric_address(*name));
}

bool Site::has_token(const HttpRequest& request) const {
  constexpr std::string_view scheme = "bearer ";
  const std::string_view given = request.field("authorization").value_or("");
  return given.size() > scheme.size() && equal_ignoring_case(given.substr(0, scheme.size()), scheme) &&
         equal_in_constant_time(rules_.token, given.substr(scheme.size()));
}

const Route* Site::find(const HttpRequest& request) const {
  for (const Route& route : routes_)
    if (route.path == request.path && answers(route, request.method)) return &route;
  return nullptr;
}

std::optional<HttpResponse> Site::check(const HttpRequest& request) const {
  if (!is_allowed_host(request))
    return error_response(421, "the Host field does not name this server; --allow-host adds a name");
  const Route* const route = find(request);
  if (route == nullptr) {
    std::string allowed;
    for (const Route& other : routes_)
      if (other.path == request.path)
        allowed += (allowed.empty() ? "" : ", ") +
                   std::string(other.method == HttpMethod::get ? "GET, HEAD" : name_of(other.method));
    if (allowed.empty()) return error_response(404, "no such page");
    return error_response(405, "expected the method " + allowed, {{"Allow", allowed}});
  }
  if (request.method == HttpMethod::post && is_cross_site(request))
    return error_response(403, "a page of another site may not use this server");
  if (route->access == Access::token && !rules_.token.empty() && !has_token(request))
    return error_response(401, "expected the header Authorization: Bearer TOKEN",
                          {{"WWW-Authenticate", "Bearer"}});
  return route->check ? route->check(request) : std::nullopt;
}

void Site::handle(HttpRequest request, HttpReply reply) const {
  const Route* const route = find(request);
  expect(route != nullptr);
  route->handle(std::move(request), std::move(reply));
}

}  // namespace tandem
