// What the commands that answer over HTTP share: where they listen, who may ask, and how they end.
#pragma once

#include <csignal>
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

// SIGINT and SIGTERM wait for HttpSite::run() from here on, also in threads that are started later. Call it
// before what starts threads; a GPU's driver does.
sigset_t block_stop_signals();

class HttpSite {
 public:
  // Opens the port, so that one in use is told at once. Throws Error for an address that other machines reach
  // without a token. Blocks the signals that end it.
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
