// What the commands that answer over HTTP share: where they listen, who may ask, and how they end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/process/descriptor.h"
#include "tandem/serve/http_server.h"
#include "tandem/serve/site.h"

namespace tandem {

struct HttpFlags {
  std::string listen = {}, token_file = {};
  std::vector<std::string> hosts = {};
  HttpServerOptions server = {};
};

// --token-file and --allow-host; they need the flag `needed`, if there is one.
void add_access_flags(CLI::App& command, HttpFlags& flags, CLI::Option* needed = nullptr);

class HttpSite {
 public:
  // Opens the port, so that one in use is told at once. Throws Error for an address that other machines reach
  // without a token. From here on SIGINT and SIGTERM wait for run(), also in threads that are started later.
  explicit HttpSite(HttpFlags flags);

  using Observe = decltype(HttpHandlers::observe);

  // Serves until SIGINT or SIGTERM; `on_start` is called before, from the same thread.
  void run(std::vector<Route> routes, const std::function<void(HttpServer&)>& on_start, Observe observe = {});

 private:
  HttpFlags flags_;
  ListenAddress address_;
  std::string token_;
  Descriptor signals_;
  ListenSocket socket_;
};

}  // namespace tandem
