// The routes of a server and the rules for whoever asks: which names it is called by, who needs a token, and
// that pages of other sites cannot post to it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/serve/http_message.h"
#include "tandem/serve/http_reply.h"
#include "tandem/serve/listen_socket.h"

namespace tandem {

// Who may use a route. Every route must say it.
enum class Access {
  unset,
  open,  // everybody: it shows nothing of models and data
  token  // those who send the token, where the server has one
};

struct Route {
  HttpMethod method = HttpMethod::get;  // get also answers HEAD
  std::string path;
  Access access = Access::unset;
  std::function<void(HttpRequest, HttpReply)> handle;
  // Examines the header before the body is read, if set.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> check = {};
};

struct SiteRules {
  std::string token;               // empty: none is needed
  std::vector<std::string> hosts;  // allowed names in Host, in lower case, without port
  bool any_numeric_host = false;   // addresses are allowed: only names can be rebound
};

// The names under which a server at `address` may be asked, and those of `more`.
SiteRules site_rules(const ListenAddress& address, const std::vector<std::string>& more, std::string token);

// The token of a file: its only line. Throws Error unless it has from 16 to 1024 visible characters.
std::string read_token_file(const std::string& path);

// Takes the same time wherever the texts differ.
bool equal_in_constant_time(std::string_view secret, std::string_view given);

class Site {
 public:
  // Throws InternalError for a route without an access rule.
  Site(std::vector<Route> routes, SiteRules rules);

  const std::vector<Route>& routes() const { return routes_; }
  // Why the request is refused; none: it is not.
  std::optional<HttpResponse> check(const HttpRequest& request) const;
  // Of a request that check() has accepted.
  void handle(HttpRequest request, HttpReply reply) const;

 private:
  bool is_allowed_host(const HttpRequest& request) const;
  bool has_token(const HttpRequest& request) const;
  const Route* find(const HttpRequest& request) const;

  std::vector<Route> routes_;
  SiteRules rules_;
};

}  // namespace tandem
