#include "apps/tandem/http_site.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <csignal>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/text/message.h"

namespace tandem {

sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

namespace {

// Readable when a signal that ends the server has come.
Descriptor stop_signals() {
  const sigset_t signals = block_stop_signals();
  Descriptor readable(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!readable) fail("[serve] cannot wait for signals: {}", errno_message(errno));
  return readable;
}

// As many descriptors as this user may have: one per connection.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

ListenAddress checked_address(const HttpFlags& flags) {
  ListenAddress address = parse_listen_address(flags.listen);
  check(address.is_local() || !flags.token_file.empty(),
        "[serve] expected --token-file FILE to listen on {}, which other machines can reach: requests must "
        "then carry its token. The token is not encrypted: put a proxy with TLS (nginx, Caddy) in front, and "
        "let it pass requests to 127.0.0.1",
        address.to_string());
  return address;
}

std::string page_address(const ListenAddress& address) {
  return address.is_unix() ? address.to_string() : fmt::format("http://{}/", address.to_string());
}

}  // namespace

void add_access_flags(CLI::App& command, HttpFlags& flags, CLI::Option* needed) {
  CLI::Option* const token =
      command.add_option("--token-file", flags.token_file, "Requests must carry the token in this file")
          ->type_name("FILE");
  CLI::Option* const host =
      command
          .add_option("--allow-host", flags.hosts, "A further name of this server, as a proxy passes it on")
          ->type_name("NAME")
          ->allow_extra_args(false);
  if (!needed) return;
  token->needs(needed);
  host->needs(needed);
}

HttpSite::HttpSite(HttpFlags flags)
    : flags_(std::move(flags)),
      address_(checked_address(flags_)),
      token_(flags_.token_file.empty() ? "" : read_token_file(flags_.token_file)),
      signals_(stop_signals()),
      socket_(address_) {
  raise_descriptor_limit();
}

void HttpSite::run(std::vector<Route> routes, const std::function<void(HttpServer&)>& on_start,
                   Observe observe) {
  const Site site(std::move(routes), site_rules(address_, flags_.hosts, token_));
  HttpServer server(std::move(socket_),
                    {.check = [&](const HttpRequest& request) { return site.check(request); },
                     .handle = [&](HttpRequest request,
                                   HttpReply reply) { site.handle(std::move(request), std::move(reply)); },
                     .observe = std::move(observe)},
                    flags_.server);
  server.stop_on(signals_.get());
  on_start(server);
  print_message("Listening on {}\n", page_address(server.address()));
  server.run();
  print_message("Stopped\n");
}

}  // namespace tandem
