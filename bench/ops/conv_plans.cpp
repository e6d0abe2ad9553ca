// ops_conv_plans [BATCH [infer|train|all [MAX_PLANS]]]: times the engines that cuDNN ranks for the
// convolutions of ResNet-18 and ResNet-50 in bf16 at 224×224, and prints the rows of
// tandem/ops/conv/cudnn_plan_table.cpp. A row is a comment where the first engine is as fast as the best one.
// Plans are built by all CPUs at once, because cuDNN compiles some of them, and timed one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/device/gpu_identity.h"
#include "tandem/ops/conv/cudnn_plan.cuh"
#include "tandem/ops/conv/cudnn_plan_table.h"
#include "tandem/ops/conv/space_to_depth.cuh"
#include "tandem/ops/random.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

using detail::Conv2dPlan;
using detail::ConvGraph;
using detail::ConvPass;

constexpr std::array depths{18, 50};

struct Case {
  ConvGraph graph;
  std::array<int, depths.size()> uses{};  // in a pass through each network
  double first_us = 0;
  double best_us = 0;
};

// Collects the convolutions of the networks, each once.
class Cases {
 public:
  Cases(std::int64_t images, bool infer, bool train) : images_(images), infer_(infer), train_(train) {
    for (std::size_t network = 0; network < depths.size(); ++network) add_network(network);
  }

  std::vector<Case> all;

 private:
  struct Fused {
    bool residual;
    bool relu;
  };

  void add_network(std::size_t network) {
    const auto conv = [&](std::int64_t size, std::int64_t channels, std::int64_t filters, std::int64_t kernel,
                          std::int64_t stride, Fused fused) {
      add_layer(network, size, channels, filters, kernel, stride, fused);
    };
    constexpr Fused plain{false, false}, relu{false, true}, added{true, true};
    conv(224, 3, 64, 7, 2, relu);
    const bool bottleneck = depths[network] == 50;
    const std::array<int, 4> blocks = bottleneck ? std::array{3, 4, 6, 3} : std::array{2, 2, 2, 2};
    std::int64_t size = 56, channels = 64, width = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2)
      for (int block = 0; block < blocks[stage]; ++block) {
        const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1, out = bottleneck ? 4 * width : width,
                           in_size = size;
        size /= stride;
        if (bottleneck) {
          conv(in_size, channels, width, 1, 1, relu);
          conv(in_size, width, width, 3, stride, relu);
          conv(size, width, out, 1, 1, added);
        } else {
          conv(in_size, channels, width, 3, stride, relu);
          conv(size, width, width, 3, 1, added);
        }
        if (stride > 1 || channels != out) conv(in_size, channels, out, 1, stride, plain);
        channels = out;
      }
  }

  void add_layer(std::size_t network, std::int64_t size, std::int64_t channels, std::int64_t filters,
                 std::int64_t kernel, std::int64_t stride, Fused fused) {
    const std::int64_t padding = kernel / 2, out = (size + 2 * padding - kernel) / stride + 1;
    Conv2dPlan plan{.images = images_,
                    .channels = channels,
                    .filters = filters,
                    .in = size,
                    .kernel = kernel,
                    .out = out,
                    .window = {.stride = stride, .padding = padding},
                    .dtype = DType::bf16,
                    .precision = MatmulPrecision::bf16};
    const bool first = detail::is_space_to_depth_profitable(plan);
    if (first) plan = detail::make_space_to_depth(plan).plan;
    if (infer_)
      add(network, {.plan = plan, .bias = DType::bf16, .residual = fused.residual, .relu = fused.relu});
    if (!train_) return;
    for (const ConvPass pass : {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient})
      if (!first || pass != ConvPass::input_gradient) add(network, {.plan = plan, .pass = pass});
  }

  void add(std::size_t network, const ConvGraph& graph) {
    auto found = std::ranges::find(all, graph, &Case::graph);
    if (found == all.end()) found = all.insert(all.end(), Case{.graph = graph});
    ++found->uses[network];
  }

  std::int64_t images_;
  bool infer_;
  bool train_;
};

// Inputs with room for every case, and a result that no case reads.
class Operands {
 public:
  Operands(const std::vector<Case>& cases, Device device) {
    std::int64_t images = 1, weights = 1, filters = 1;
    for (const Case& each : cases) {
      const detail::Conv2dSizes sizes = detail::sizes_of(each.graph.plan);
      images = std::max({images, sizes.x, sizes.y});
      weights = std::max(weights, sizes.weight);
      filters = std::max(filters, each.graph.plan.filters);
    }
    const auto random = [&](std::int64_t count, double deviation, std::uint64_t seed) {
      return normal({count}, 0, deviation, {.seed = seed, .dtype = DType::bf16, .device = device});
    };
    images_ = random(images, 1, 1);
    residual_ = random(images, 1, 2);
    weight_ = random(weights, 0.03, 3);
    bias_ = random(filters, 0.1, 4);
    result_ = Tensor::empty({std::max(images, weights)}, DType::bf16, device);
  }

  std::vector<detail::Operand> of(const ConvGraph& graph) const {
    using enum detail::Uid;
    const std::byte* const result = result_.bytes();
    switch (graph.pass) {
      case ConvPass::input_gradient:
        return {{uid_x, result}, {uid_weight, weight_.bytes()}, {uid_y, images_.bytes()}};
      case ConvPass::weight_gradient:
        return {{uid_x, images_.bytes()}, {uid_weight, result}, {uid_y, residual_.bytes()}};
      default:
        return {{uid_x, images_.bytes()},
                {uid_weight, weight_.bytes()},
                {uid_y, result},
                {uid_bias, graph.bias ? bias_.bytes() : nullptr},
                {uid_residual, graph.residual ? residual_.bytes() : nullptr}};
    }
  }

 private:
  Tensor images_, residual_, weight_, bias_, result_;
};

struct Candidate {
  std::string engine;
  std::unique_ptr<detail::ExecutionPlan> plan;
  double build_ms;
};

// In the order of the ranking.
std::vector<Candidate> build_candidates(const ConvGraph& graph, std::size_t max_plans, StreamView stream) {
  const cudnnHandle_t handle = cudnn_handle(stream);
  const CudnnDescriptor operations = detail::operation_graph(graph, handle);
  std::vector<Candidate> candidates;
  if (!operations.get()) return candidates;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B}) {
    std::size_t count = 0;
    for (const CudnnDescriptor& each : detail::ranked_engines(operations, graph.plan, mode)) {
      const std::string engine = detail::engine_name(each);
      if (std::ranges::find(candidates, engine, &Candidate::engine) != candidates.end()) continue;
      if (count++ == max_plans) break;
      const auto start = std::chrono::steady_clock::now();
      auto plan = detail::build_plan(each, handle);
      const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
      if (plan) candidates.push_back({engine, std::move(plan), taken.count()});
    }
  }
  return candidates;
}

double time_us(const detail::ExecutionPlan& plan, const std::vector<detail::Operand>& operands, int samples,
               int calls, StreamView stream) {
  std::vector<double> taken;
  Event start(stream.device), stop(stream.device);
  for (int sample = 0; sample < samples; ++sample) {
    start.record(stream);
    for (int call = 0; call < calls; ++call) detail::execute(plan, operands, stream);
    stop.record(stream);
    stop.synchronize();
    taken.push_back(stop.elapsed_ms_since(start) * 1000 / calls);
  }
  std::ranges::sort(taken);
  return taken[taken.size() / 2];
}

std::string row_of(const ConvGraph& graph, const std::string& engine) {
  const char* const pass = graph.pass == ConvPass::forward          ? "forward"
                           : graph.pass == ConvPass::input_gradient ? "input_gradient"
                                                                    : "weight_gradient";
  const Conv2dPlan& plan = graph.plan;
  const bool large = plan.images >= 128;
  return fmt::format("{{{}, \"{}\", bf16, {}, {}, {}, {}, {}, {}, {}, {}, \"{}\"}},", pass, fused_name(graph),
                     large ? 128 : plan.images, large ? 1024 : plan.images, plan.in.y, plan.channels,
                     plan.filters, plan.kernel.y, plan.window.stride.y, plan.window.padding.y, engine);
}

// Engines that are slower than the best one so far by a third are timed only briefly. The first and the best
// are timed again at the end, side by side.
void time_case(Case& each, const std::vector<Candidate>& candidates, const Operands& operands,
               const GpuIdentity& gpu, StreamView stream) {
  if (candidates.empty()) return fmt::print("// no plan: {}\n", row_of(each.graph, ""));
  const std::vector<detail::Operand> pointers = operands.of(each.graph);
  const Candidate* best = nullptr;
  double best_us = 0;
  for (const Candidate& candidate : candidates) {
    time_us(*candidate.plan, pointers, 1, 2, stream);  // loads kernels
    double us = time_us(*candidate.plan, pointers, 1, 3, stream);
    if (best && us > 1.33 * best_us) continue;
    us = time_us(*candidate.plan, pointers, 3, 10, stream);
    if (best && us >= best_us) continue;
    best = &candidate;
    best_us = us;
  }
  const Candidate& first = candidates.front();
  each.first_us = each.best_us = time_us(*first.plan, pointers, 5, 10, stream);
  if (best != &first) each.best_us = time_us(*best->plan, pointers, 5, 10, stream);
  const bool better = each.best_us < 0.98 * each.first_us;
  if (!better) each.best_us = each.first_us;
  const std::string_view stored =
      detail::preferred_engine(detail::preferred_engines(), gpu.name, gpu.cudnn, each.graph);
  const bool usable = std::ranges::find(candidates, stored, &Candidate::engine) != candidates.end();
  fmt::print("{}{}  // {:.1f} -> {:.1f} us, first {} built in {:.0f} ms, best in {:.0f} ms, of {}; {}\n",
             better ? "" : "// ", row_of(each.graph, best->engine), each.first_us, each.best_us, first.engine,
             first.build_ms, best->build_ms, candidates.size(),
             stored.empty()           ? "no row"
             : !usable                ? "its row is not ranked"
             : stored == best->engine ? "its row is the best"
                                      : "its row is another one");
  std::fflush(stdout);
}

// Every thread builds the plans of one case, then the cases are timed in turn.
void run(std::vector<Case>& cases, std::size_t max_plans, const GpuIdentity& gpu) {
  const StreamView stream = current_stream(cuda_device());
  const Operands operands(cases, cuda_device());
  stream.synchronize();
  const std::size_t threads =
      std::clamp<std::size_t>(static_cast<std::size_t>(usable_cpus()), 1, cases.size());
  std::barrier all(static_cast<std::ptrdiff_t>(threads));
  std::mutex one;
  const auto work = [&](std::size_t id) {
    const auto guarded = [&](const auto& f) {
      try {
        f();
      } catch (const std::exception& error) {
        const std::lock_guard lock(one);
        fmt::print("// error: {}\n", error.what());
      }
    };
    for (std::size_t first = 0; first < cases.size(); first += threads) {
      std::vector<Candidate> candidates;
      Case* const mine = first + id < cases.size() ? &cases[first + id] : nullptr;
      if (mine) guarded([&] { candidates = build_candidates(mine->graph, max_plans, stream); });
      all.arrive_and_wait();
      if (mine)
        guarded([&] {
          const std::lock_guard lock(one);
          time_case(*mine, candidates, operands, gpu, stream);
        });
      all.arrive_and_wait();
    }
  };
  std::vector<std::thread> team;
  for (std::size_t i = 0; i < threads; ++i) team.emplace_back(work, i);
  for (std::thread& thread : team) thread.join();
}

void print_totals(const std::vector<Case>& cases, std::int64_t images) {
  for (std::size_t network = 0; network < depths.size(); ++network) {
    std::map<std::string, std::pair<double, double>> totals;  // ms by first and by best engines
    for (const Case& each : cases) {
      const char* const what = each.graph.bias                               ? "inference"
                               : each.graph.pass == ConvPass::forward        ? "forward"
                               : each.graph.pass == ConvPass::input_gradient ? "input gradients"
                                                                             : "weight gradients";
      totals[what].first += each.uses[network] * each.first_us / 1000;
      totals[what].second += each.uses[network] * each.best_us / 1000;
    }
    for (const auto& [what, ms] : totals)
      fmt::print("// ResNet-{} batch {} {}: {:.3f} -> {:.3f} ms\n", depths[network], images, what, ms.first,
                 ms.second);
  }
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  using namespace tandem;
  try {
    const auto images = parse_number<std::int64_t>(count > 1 ? words[1] : "256");
    const std::string what = count > 2 ? words[2] : "all";
    const auto max_plans = parse_number<std::int64_t>(count > 3 ? words[3] : "10");
    if (!images || *images < 1 || !max_plans || *max_plans < 1 || count > 4 ||
        (what != "infer" && what != "train" && what != "all")) {
      fmt::print(stderr, "usage: ops_conv_plans [BATCH [infer|train|all [MAX_PLANS]]]\n");
      return 2;
    }
    Cases cases(*images, what != "train", what != "infer");
    const GpuIdentity gpu = gpu_identity(cuda_device());
    fmt::print("// {}, cuDNN {}: {} convolutions\n", gpu.name, gpu.cudnn, cases.all.size());
    run(cases.all, static_cast<std::size_t>(*max_plans), gpu);
    print_totals(cases.all, *images);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ops_conv_plans: error: {}\n", error.what());
    return 1;
  }
}
