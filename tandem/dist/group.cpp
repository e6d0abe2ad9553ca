#include "tandem/dist/group.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/dist/launch.h"
#include "tandem/dist/reduce_arrays.h"

namespace tandem {
namespace {

class SoloGroup : public Group {
 public:
  SoloGroup() : Group(0), places_{detect_launch({}).place} {}

  const std::vector<Place>& places() const override { return places_; }

  Work reduce(const Partials& mine, const Tensor& out) override {
    const ReduceArrays arrays =
        reduce_arrays(std::make_shared<TreeSum>(mine.shards, 1), 0, mine, out);  // one node: the root
    arrays.tree->add(arrays.mine, {arrays.out, static_cast<std::size_t>(arrays.size)});
    return {};
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    expect(all.size() == mine.size());
    if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
  }
  void broadcast(std::span<std::byte>, int from) override { expect(from == 0); }
  void fail(std::string_view) noexcept override {}
  void throw_if_failed() override {}

 private:
  std::vector<Place> places_;
};

}  // namespace

Control Group::agree(const Control& mine) {
  struct Wire {
    std::int64_t stop_signal, save, steps;
  };
  const Wire own{mine.stop_signal, mine.save, mine.steps};
  std::vector<Wire> all(places().size());
  all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  Control agreed{.steps = all.front().steps};
  for (const Wire& one : all) {
    agreed.stop_signal = std::max(agreed.stop_signal, static_cast<int>(one.stop_signal));
    agreed.save = agreed.save || one.save != 0;
  }
  return agreed;
}

std::unique_ptr<Group> solo_group() {
  return std::make_unique<SoloGroup>();
}

}  // namespace tandem
