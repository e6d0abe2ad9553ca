// The time of one sum over local ranks, in the memory they share and by messages through their rings, for the
// gradients of ResNet-18 (45 MB) and of 784,200,10 (0.64 MB). Ranks are threads with mappings of their own;
// processes do the same work. "copy" is one copy of as many bytes, for comparison.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/dist/local_transport.h"
#include "tandem/dist/transport_group.h"

namespace tandem {
namespace {

enum class Path { shared_memory, messages };

std::unique_ptr<Group> make_group(Path path, int ranks, int rank, int fd) {
  const Place place{.rank = rank, .size = ranks, .host = "bench", .pid = getpid()};
  const auto segment = std::make_shared<LocalSegment>(Descriptor(dup(fd)));
  if (path == Path::shared_memory) return local_group(place, segment, {});
  return transport_group(place, [&] { return LocalTransport::open(segment, rank); }, {});
}

// Calls measure(ms) after every sum while more() is true, which rank 0 alone asks.
template <class More, class Measure>
void run_rank(Group& group, std::int64_t floats, More&& more, Measure&& measure) {
  Partials mine{.shards = group.place().size, .sums = {Tensor::empty({floats}, DType::f32)}};
  const Tensor out = Tensor::empty({floats}, DType::f32);
  std::memset(mine.sums[0].bytes(), 0, static_cast<std::size_t>(floats) * sizeof(float));
  group.reduce(mine, out).wait();
  while (group.agree({.steps = group.place().rank == 0 && more() ? 1 : 0}).steps > 0) {
    const Stopwatch watch;
    group.reduce(mine, out).wait();
    measure(watch.elapsed_ms());
  }
}

void all_reduce(benchmark::State& state, Path path) {
  const auto ranks = static_cast<int>(state.range(0));
  const std::int64_t floats = state.range(1);
  const LocalSegment segment(ranks);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      run_rank(
          *make_group(path, ranks, rank, segment.fd()), floats, [] { return false; }, [](double) {});
    });
  run_rank(
      *make_group(path, ranks, 0, segment.fd()), floats, [&] { return state.KeepRunning(); },
      [&](double elapsed_ms) { state.SetIterationTime(elapsed_ms / 1e3); });
  for (std::thread& thread : threads) thread.join();
  state.SetBytesProcessed(state.iterations() * floats * std::int64_t{sizeof(float)});
}

void copy(benchmark::State& state) {
  const std::vector<float> from(static_cast<std::size_t>(state.range(0)), 1.0F);
  std::vector<float> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * std::int64_t{sizeof(float)});
}

// As small as the statistics of batch norm.
void all_gather(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const LocalSegment segment(ranks);
  const auto gather = [&](int rank, auto&& more) {
    const auto group = make_group(Path::shared_memory, ranks, rank, segment.fd());
    std::vector<std::int64_t> mine(512, 1), all(512 * static_cast<std::size_t>(ranks));
    do {
      mine[0] = rank == 0 && more() ? 1 : 0;
      group->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    } while (all[0] != 0);
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { gather(rank, [] { return false; }); });
  gather(0, [&] { return state.KeepRunning(); });
  for (std::thread& thread : threads) thread.join();
}

constexpr std::int64_t resnet18 = 11'181'642, mlp = 159'010;

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ranks", "floats"})
      ->ArgsProduct({{2, 4}, {mlp, resnet18}})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(all_reduce, shared_memory, Path::shared_memory)
    ->Name("all_reduce/shared_memory")
    ->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, messages, Path::messages)->Name("all_reduce/messages")->Apply(sizes);
BENCHMARK(copy)
    ->Name("all_reduce/copy")
    ->ArgName("floats")
    ->Arg(mlp)
    ->Arg(resnet18)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(all_gather)
    ->Name("all_gather/4_KB")
    ->ArgName("ranks")
    ->Arg(2)
    ->Arg(4)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem
