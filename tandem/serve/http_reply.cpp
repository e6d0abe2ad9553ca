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

void ReplyQueue::put(Entry entry) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
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

HttpStream::HttpStream(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection,
                       std::shared_ptr<std::atomic<bool>> is_open)
    : queue_(std::move(queue)), connection_(connection), is_open_(std::move(is_open)) {}

HttpStream::~HttpStream() {
  if (queue_) queue_->put({connection_, ReplyQueue::Kind::end, {}});
}

void HttpStream::send(std::string text) {
  expect(queue_ != nullptr);
  queue_->put({connection_, ReplyQueue::Kind::part, {.body = std::move(text)}});
}

HttpReply::HttpReply(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection)
    : queue_(std::move(queue)), connection_(connection) {}

HttpReply::~HttpReply() {
  if (queue_)
    queue_->put({connection_, ReplyQueue::Kind::whole, error_response(500, "the request was not answered")});
}

void HttpReply::send(HttpResponse response) {
  expect(queue_ != nullptr);
  std::exchange(queue_, nullptr)->put({connection_, ReplyQueue::Kind::whole, std::move(response)});
}

HttpStream HttpReply::begin(HttpResponse response) {
  expect(queue_ != nullptr);
  auto is_open = std::make_shared<std::atomic<bool>>(true);
  response.is_stream = true;
  queue_->put({connection_, ReplyQueue::Kind::begin, std::move(response), is_open});
  return {std::exchange(queue_, nullptr), connection_, std::move(is_open)};
}

}  // namespace tandem
