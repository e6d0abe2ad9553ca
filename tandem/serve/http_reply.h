// HttpReply: the promise of a response, which any thread may keep.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/process/descriptor.h"
#include "tandem/serve/http_message.h"

namespace tandem {

// Responses on their way from other threads to the event loop, which is woken by a descriptor.
class ReplyQueue {
 public:
  struct Entry {
    std::uint64_t connection;
    HttpResponse response;
  };

  // Throws Error when no file descriptor is left.
  ReplyQueue();

  // Becomes readable after put() and wake().
  int fd() const { return event_.get(); }
  void put(std::uint64_t connection, HttpResponse response);
  void wake() const;
  // For the event loop.
  std::vector<Entry> take_all();

 private:
  Descriptor event_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Move-only. A reply that is destroyed without an answer sends status 500; an answer to a client that has
// gone is dropped.
class HttpReply {
 public:
  HttpReply(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection);
  ~HttpReply();
  HttpReply(HttpReply&& other) noexcept = default;
  HttpReply& operator=(HttpReply&&) = delete;

  // At most once.
  void send(HttpResponse response);

 private:
  std::shared_ptr<ReplyQueue> queue_;  // null after send()
  std::uint64_t connection_;
};

}  // namespace tandem
