// Operation: one collective operation of a rank, advanced in small steps that never wait.
#pragma once

#include <algorithm>
#include <vector>

#include "tandem/dist/transport.h"

namespace tandem {

class Operation {
 public:
  Operation() = default;
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Does all that can be done without waiting for another rank. True once the operation is complete. Error
  // when a message failed or the ranks call different operations.
  virtual bool advance() = 0;
  // A rank that has not done its part yet; −1 when all have.
  virtual int waits_for() const = 0;
};

// Messages that are on their way together.
class RequestSet {
 public:
  void add(Request request) { requests_.push_back(std::move(request)); }
  // Moves data; true once all messages are complete.
  bool test() {
    std::erase_if(requests_, [](Request& request) { return request.test(); });
    return requests_.empty();
  }
  bool empty() const { return requests_.empty(); }
  // The rank with which a message is not complete; −1 without one.
  int peer() const { return requests_.empty() ? -1 : requests_.front().peer(); }

 private:
  std::vector<Request> requests_;
};

}  // namespace tandem
