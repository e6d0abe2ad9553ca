// PluginChannel: the process of a plugin, and the bytes that ask it and answer.
#pragma once

#include <string>
#include <vector>

#include "tandem/process/child_process.h"
#include "tandem/process/descriptor.h"

namespace tandem::detail {

// The environment of this process without the variables that would make a plugin's threads or libraries
// differ from what the call asks for.
std::vector<std::string> plugin_environment();

class PluginChannel {
 public:
  // The process has not been started.
  PluginChannel();
  PluginChannel(const PluginChannel&) = delete;
  PluginChannel& operator=(const PluginChannel&) = delete;

  pid_t pid() const { return process_.pid(); }
  // Descriptors for the process: where it reads requests and writes replies.
  int requests_fd() const { return requests_.read.get(); }
  int replies_fd() const { return replies_.write.get(); }

  // Starts `words`, a program and its arguments, which inherits the descriptors.
  void start(const std::vector<std::string>& words, std::vector<int> fds,
             std::vector<std::string> environment);

  // Lets the process run, asks, waits for the reply and, if asked to, stops it. Returns the milliseconds from
  // the request to the reply. Throws PluginFailure when there is none.
  double ask(double timeout_s, bool stop);
  // Waits for a reply to what was not asked: that the process is ready.
  void wait_for_reply(double timeout_s);

 private:
  struct Pipe {
    Pipe();
    Descriptor read, write;
  };

  bool has_reply() const;
  // Whether the process has ended or can no longer answer.
  bool is_gone();
  // How it ended, with the end of what it wrote to standard error.
  std::string describe_end();
  void read_errors();
  std::string last_error_line() const;
  [[noreturn]] void end(const std::string& reason);

  Pipe requests_, replies_, errors_;
  ChildProcess process_;
  std::string error_text_;
  std::string how_it_ended_;
  bool is_stopped_ = false;
};

}  // namespace tandem::detail
