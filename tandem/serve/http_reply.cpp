#include "tandem/serve/http_reply.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {

ReplyQueue::ReplyQueue() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) fail("[serve] cannot make an event: {}", errno_message(errno));
}

void ReplyQueue::put(std::uint64_t connection, HttpResponse response) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({connection, std::move(response)});
  }
  wake();
}

void ReplyQueue::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);  // full: it is awake
}

std::vector<ReplyQueue::Entry> ReplyQueue::take_all() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_, {});
}

HttpReply::HttpReply(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection)
    : queue_(std::move(queue)), connection_(connection) {}

HttpReply::~HttpReply() {
  if (queue_) queue_->put(connection_, error_response(500, "the request was not answered"));
}

void HttpReply::send(HttpResponse response) {
  expect(queue_ != nullptr);
  std::exchange(queue_, nullptr)->put(connection_, std::move(response));
}

}  // namespace tandem
