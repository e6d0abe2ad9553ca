#include "tests/dist/test_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tandem/dist/connect_group.h"
#include "tests/dist/shard_sums.h"

namespace tandem {
namespace {

void write_line(const std::string& text) {
  const std::string line = text + "\n";  // in one piece: several ranks write to one pipe
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

Partials partials(std::int64_t shards, const Place& place, std::int64_t size) {
  Partials mine{.shards = shards};
  for (const Floats& sum : rank_sums(shards, place.size, place.rank, size))
    mine.sums.push_back(Tensor::from(sum, {size}));
  return mine;
}

bool sums_are_right(Group& group) {
  const Place& place = group.place();
  for (const std::int64_t shards : {4, 6, 8})
    for (const std::int64_t size : {1, 33, 1000, 40'000, 1'200'001}) {
      const Partials mine = partials(shards, place, size);
      const Tensor first = Tensor::empty({size}, DType::f32), second = mine.sums[0];
      Work one = group.reduce(mine, first);
      one.wait();
      Work two = group.reduce(mine, second);  // in place
      two.wait();
      const Floats expected = node_sum({0, shards}, size);
      if (!same_bits(first.to_vector<float>(), expected) || !same_bits(second.to_vector<float>(), expected))
        return false;
    }
  return true;
}

bool small_operations_are_right(Group& group) {
  const int rank = group.place().rank, size = group.place().size;
  for (int round = 0; round < 20; ++round) {
    const int value = 100 * round + rank;
    std::vector<int> all(static_cast<std::size_t>(size));
    group.all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
    for (int from = 0; from < size; ++from)
      if (all[static_cast<std::size_t>(from)] != 100 * round + from) return false;
  }
  for (int from = 0; from < size; ++from)
    for (const std::size_t bytes : {0U, 1U, 3'000'000U}) {
      const auto sent = static_cast<unsigned char>(from + 1);
      std::vector<unsigned char> data(bytes, rank == from ? sent : 0);
      group.broadcast(std::as_writable_bytes(std::span(data)), from);
      if (data != std::vector<unsigned char>(bytes, sent)) return false;
    }
  return group.agree({.stop_signal = rank == 1 ? 15 : 0, .save = rank == size - 1, .steps = 7 + rank}) ==
         Control{.stop_signal = 15, .save = true, .steps = 7};
}

int sum_until_the_end(Group& group, const std::string& way) {
  const Place& place = group.place();
  Partials mine{.shards = place.size};
  mine.sums.push_back(Tensor::from(shard_values(place.rank, 300'000), {300'000}));
  const Tensor out = Tensor::empty({300'000}, DType::f32);
  const Floats expected = node_sum({0, place.size}, 300'000);
  for (int round = 0;; ++round) {
    group.reduce(mine, out).wait();
    if (!same_bits(out.to_vector<float>(), expected)) return 9;
    group.barrier();
    if (round > 0) continue;
    if (place.rank == 0) {
      std::string pids = "ready";
      for (const Place& one : group.places()) pids += " " + std::to_string(one.pid);
      write_line(pids);
    }
    if (way == "return") return 0;
    if (way == "fail" && place.rank == 2) {
      group.fail("cannot read 7.jpg");
      return 3;
    }
    if (way == "exit" && place.rank == 2) std::_Exit(4);
  }
}

}  // namespace

int run_rank(const std::vector<std::string>& words) {
  const std::string& way = words[1];
  try {
    const LaunchedRank launched = detect_launch(process_environment());
    if (way == "early" && launched.place.rank == 1) return 5;
    const auto group = connect_group(launched, {.limit_s = way == "stop" ? 2.0 : 10.0});
    if (way == "differ") {
      const std::int64_t size = 100 * (group->place().rank + 1);
      group->reduce(partials(group->place().size, group->place(), size), Tensor::empty({size}, DType::f32))
          .wait();
    }
    if (way != "check") return sum_until_the_end(*group, way);
    const bool is_right = sums_are_right(*group) && small_operations_are_right(*group);
    write_line("rank " + std::to_string(group->place().rank) + " of " + std::to_string(group->place().size) +
               (is_right ? " is right" : " is wrong"));
    return is_right ? 0 : 9;
  } catch (const LostRank& error) {
    write_line(error.what());
    return 75;
  } catch (const Error& error) {
    write_line(error.what());
    return 1;
  }
}

}  // namespace tandem

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "rank") return tandem::run_rank(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
