// HttpReply: the promise of a response, which any thread may keep, at once or in parts that come with time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/process/descriptor.h"
#include "tandem/serve/http_message.h"

namespace tandem {

// Responses on their way from other threads to the event loop, which is woken by a descriptor.
class ReplyQueue {
 public:
  enum class Kind {
    whole,  // a response
    begin,  // of a stream: the response without the rest of its body
    part,   // of its body
    end
  };
  struct Entry {
    std::uint64_t connection;
    Kind kind;
    HttpResponse response;                         // of a part only the body
    std::shared_ptr<std::atomic<bool>> is_open{};  // of a stream that begins
  };

  // Throws Error when no file descriptor is left.
  ReplyQueue();

  // Becomes readable after put() and wake().
  int fd() const { return event_.get(); }
  void put(Entry entry);
  void wake() const;
  // For the event loop.
  std::vector<Entry> take_all();

 private:
  Descriptor event_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// The body of a response that has begun; its destruction ends it. Move-only. A client that does not read is
// disconnected when too much waits for it.
class HttpStream {
 public:
  HttpStream(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection,
             std::shared_ptr<std::atomic<bool>> is_open);
  ~HttpStream();
  HttpStream(HttpStream&& other) noexcept = default;
  HttpStream& operator=(HttpStream&&) = delete;

  void send(std::string text);
  // False: the client has gone.
  bool is_open() const { return is_open_->load(); }

 private:
  std::shared_ptr<ReplyQueue> queue_;  // null: moved from
  std::uint64_t connection_;
  std::shared_ptr<std::atomic<bool>> is_open_;
};

// Move-only. A reply that is destroyed without an answer sends status 500; an answer to a client that has
// gone is dropped.
class HttpReply {
 public:
  HttpReply(std::shared_ptr<ReplyQueue> queue, std::uint64_t connection);
  ~HttpReply();
  HttpReply(HttpReply&& other) noexcept = default;
  HttpReply& operator=(HttpReply&&) = delete;

  // One of them, and at most once.
  void send(HttpResponse response);
  HttpStream begin(HttpResponse response);

 private:
  std::shared_ptr<ReplyQueue> queue_;  // null after one of them
  std::uint64_t connection_;
};

}  // namespace tandem
