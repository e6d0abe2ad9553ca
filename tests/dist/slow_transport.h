// A transport that holds messages back for a while and lets them go in another order, as a network may: only
// messages with the same receiver and tag keep theirs. Some or all may never arrive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "tandem/dist/transport_abi.h"

namespace tandem {

struct SlowOptions {
  unsigned seed = 1;
  bool any_thread = true;
  // Messages of a rank after this many are lost.
  std::int64_t lost_after = std::int64_t{1} << 60;
};

class SlowTransport {
 public:
  static TandemTransport open(const TandemTransport& inner, const SlowOptions& options) {
    TandemTransport table{};
    table.version = TANDEM_TRANSPORT_VERSION;
    table.any_thread = options.any_thread ? 1 : 0;
    table.rank = inner.rank;
    table.size = inner.size;
    table.state = new SlowTransport(inner, options);
    table.post_send = [](void* state, std::int32_t to, std::int32_t tag, const void* data,
                         std::int64_t bytes) {
      SlowTransport& slow = self(state);
      slow.held_[slow.next_] = {to, tag, data, bytes};
      return slow.next_++;
    };
    table.post_receive = [](void* state, std::int32_t from, std::int32_t tag, void* data,
                            std::int64_t bytes) {
      SlowTransport& slow = self(state);
      slow.posted_[slow.next_] = slow.inner_.post_receive(slow.inner_.state, from, tag, data, bytes);
      return slow.next_++;
    };
    table.test = [](void* state, std::int64_t request) { return self(state).test(request); };
    table.cancel = [](void* state, std::int64_t request) {
      SlowTransport& slow = self(state);
      slow.held_.erase(request);
      const auto found = slow.posted_.find(request);
      if (found == slow.posted_.end()) return;  // held back, or lost
      slow.inner_.cancel(slow.inner_.state, found->second);
      slow.posted_.erase(found);
    };
    table.peer_state = [](void*, std::int32_t) -> std::int32_t { return TANDEM_PEER_RUNS; };
    table.error = [](void* state) { return self(state).inner_.error(self(state).inner_.state); };
    table.close = [](void* state, std::int32_t failed) {
      self(state).inner_.close(self(state).inner_.state, failed);
      delete &self(state);
    };
    return table;
  }

 private:
  struct Held {
    std::int32_t to, tag;
    const void* data;
    std::int64_t bytes;
  };

  SlowTransport(const TandemTransport& inner, const SlowOptions& options)
      : inner_(inner), options_(options), random_(options.seed + static_cast<unsigned>(inner.rank)) {}
  static SlowTransport& self(void* state) { return *static_cast<SlowTransport*>(state); }

  std::int32_t test(std::int64_t request) {
    release();
    if (held_.contains(request)) return TANDEM_REQUEST_PENDING;
    const auto found = posted_.find(request);
    if (found == posted_.end()) return TANDEM_REQUEST_DONE;  // lost
    const std::int32_t state = inner_.test(inner_.state, found->second);
    if (state != TANDEM_REQUEST_PENDING) posted_.erase(found);
    return state;
  }

  // Lets one message go, any but one behind another with the same receiver and tag.
  void release() {
    if (held_.empty() || random_() % 3 != 0) return;
    auto chosen = held_.begin();
    std::advance(chosen, random_() % held_.size());
    const auto first = std::ranges::find_if(held_, [&](const auto& one) {
      return one.second.to == chosen->second.to && one.second.tag == chosen->second.tag;
    });
    const Held message = first->second;
    if (sent_++ < options_.lost_after)
      posted_[first->first] =
          inner_.post_send(inner_.state, message.to, message.tag, message.data, message.bytes);
    held_.erase(first);
  }

  TandemTransport inner_;
  SlowOptions options_;
  std::mt19937 random_;
  std::map<std::int64_t, Held> held_;
  std::map<std::int64_t, std::int64_t> posted_;  // to requests of the inner transport
  std::int64_t next_ = 0, sent_ = 0;
};

}  // namespace tandem
