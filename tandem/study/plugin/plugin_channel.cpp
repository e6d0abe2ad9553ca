#include "tandem/study/plugin/plugin_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/process/wide_affinity.h"
#include "tandem/study/plugin/kernel_process.h"
#include "tandem/text/utf8.h"

namespace tandem::detail {
namespace {

constexpr std::size_t max_error_text = 8192;

pollfd to_read(int fd) {
  return {.fd = fd, .events = POLLIN, .revents = 0};
}

}  // namespace

std::vector<std::string> plugin_environment() {
  constexpr std::string_view dropped[] = {
      "LD_PRELOAD=",      "OMP_NUM_THREADS=", "OMP_PROC_BIND=",          "OMP_PLACES=",
      "OMP_WAIT_POLICY=", "PYTHONSTARTUP=",   "PYTHONDONTWRITEBYTECODE="};
  std::vector<std::string> all{"PYTHONDONTWRITEBYTECODE=1"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (std::ranges::none_of(dropped, [&](std::string_view name) { return text.starts_with(name); }))
      all.emplace_back(text);
  }
  return all;
}

PluginChannel::Pipe::Pipe() {
  int fds[2] = {-1, -1};
  if (::pipe2(fds, O_CLOEXEC) != 0) fail("[plugin] cannot make a pipe: {}", errno_message(errno));
  read = Descriptor(fds[0]);
  write = Descriptor(fds[1]);
}

PluginChannel::PluginChannel() {
  ::fcntl(errors_.read.get(), F_SETFL, O_NONBLOCK);
}

void PluginChannel::start(const std::vector<std::string>& words, std::vector<int> fds,
                          std::vector<std::string> environment) {
  // A sanitizer would handle the signals that tell how a plugin ended, and trace it when it ends, which the
  // sandbox refuses.
#if defined(__SANITIZE_ADDRESS__)
  environment.insert(environment.begin(), "ASAN_OPTIONS=handle_segv=0:handle_abort=0:detect_leaks=0");
#elif defined(__SANITIZE_THREAD__)
  environment.insert(environment.begin(), "TSAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0");
#endif
  const WideAffinity affinity;
  process_ = ChildProcess(
      words[0], words,
      {.fds = std::move(fds), .environment = std::move(environment), .error_fd = errors_.write.get()});
  // The process has its own copies. The reading end of the requests stays open here: writing to a pipe
  // without a reader would end this process.
  replies_.write.reset();
  errors_.write.reset();
}

double PluginChannel::ask(double timeout_s, bool stop) {
  // A byte that nobody asked for would be taken for the reply.
  if (has_reply()) end("answered without having been asked");
  if (is_stopped_) process_.resume();
  const Stopwatch watch;
  while (::write(requests_.write.get(), "", 1) < 0 && errno == EINTR) {
  }
  wait_for_reply(timeout_s);
  const double elapsed_ms = watch.elapsed_ms();
  if (stop && !process_.stop()) end(describe_end());
  is_stopped_ = stop;
  return elapsed_ms;
}

void PluginChannel::wait_for_reply(double timeout_s) {
  const Stopwatch watch;
  while (true) {
    const double left_ms = timeout_s * 1e3 - watch.elapsed_ms();
    if (left_ms <= 0) end(fmt::format("took longer than {:g} s", timeout_s));
    pollfd fds[] = {to_read(replies_.read.get()), to_read(errors_.read.get()), to_read(process_.end_fd())};
    constexpr double poll_ms = 1000;  // for a kernel without descriptors of processes
    ::poll(fds, std::size(fds), static_cast<int>(std::ceil(std::min(left_ms, poll_ms))));
    char byte = 0;
    if ((fds[0].revents & POLLIN) && ::read(replies_.read.get(), &byte, 1) == 1) return;
    if (fds[1].revents) read_errors();
    if ((fds[0].revents || fds[2].revents || process_.end_fd() < 0) && is_gone()) end(describe_end());
  }
}

bool PluginChannel::has_reply() const {
  pollfd reply = to_read(replies_.read.get());
  return ::poll(&reply, 1, 0) > 0 && (reply.revents & POLLIN) != 0;
}

bool PluginChannel::is_gone() {
  if (how_it_ended_.empty()) how_it_ended_ = process_.ended().value_or("");
  if (!how_it_ended_.empty()) return true;
  pollfd reply = to_read(replies_.read.get());
  ::poll(&reply, 1, 0);
  if ((reply.revents & POLLHUP) == 0) return false;
  pollfd process = to_read(process_.end_fd());
  ::poll(&process, 1, 1000);  // descriptors are closed a little before the process has ended
  how_it_ended_ = process_.ended().value_or("closed its descriptors");
  return true;
}

std::string PluginChannel::describe_end() {
  is_gone();
  read_errors();
  std::string text = how_it_ended_.empty() ? "cannot be stopped" : how_it_ended_;
  if (const std::string line = last_error_line(); !line.empty()) text += ": " + plugin_phrase(line);
  return text;
}

void PluginChannel::read_errors() {
  char text[4096];
  for (int i = 0; i < 64; ++i) {  // a flood must not keep the timeout from being noticed
    const ssize_t count = ::read(errors_.read.get(), text, sizeof text);
    if (count == 0) errors_.read.reset();
    if (count <= 0) return;
    error_text_.append(text, static_cast<std::size_t>(count));
    if (error_text_.size() > max_error_text) error_text_.erase(0, error_text_.size() - max_error_text);
  }
}

// The last line that is not blank: of a Python traceback it is the message.
std::string PluginChannel::last_error_line() const {
  const std::size_t end = error_text_.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const std::size_t newline = error_text_.find_last_of('\n', end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return error_text_.substr(begin, end + 1 - begin);
}

void PluginChannel::end(const std::string& reason) {
  process_.kill();
  throw PluginFailure(reason);
}

}  // namespace tandem::detail
