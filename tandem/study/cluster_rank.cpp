#include "tandem/study/cluster_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/shard_tree.h"
#include "tandem/core/write_file.h"
#include "tandem/dist/connect_group.h"
#include "tandem/files/read_file.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/study/measure.h"
#include "tandem/tensor/copy.h"
#include "tandem/text/message.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/local_ranks.h"
#include "tandem/train/ranks.h"

namespace tandem {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepTraffic::Bucket, ready_ms, megabytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepTraffic, buckets, gathers, gather_megabytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExchangeSample, ranks, megabytes, ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFigures, engine, loss, step_ms, without_ms, exchange_ms, rank_ms,
                                   traffic, sums, gathers)

namespace {

constexpr double megabyte = 1e6;
constexpr double learning_rate = 0.01;

// A group whose operations return at once, with this rank's values instead of those of all ranks. Notes what
// a step would have exchanged, and when. Sums start when those of the real group would.
class StandInGroup : public Group {
 public:
  explicit StandInGroup(const Group& real)
      : Group(real.place().rank), places_(real.places()), in_background_(real.sums_in_background()) {}

  const std::vector<Place>& places() const override { return places_; }
  bool sums_in_background() const override { return in_background_; }
  // Starts sums when they would start between nodes (or not).
  bool set_in_background(bool in_background) { return std::exchange(in_background_, in_background); }
  Work reduce(const Partials& mine, const Tensor& out) override {
    traffic_.buckets.push_back({watch_.elapsed_ms(), 4 * static_cast<double>(out.numel()) / megabyte});
    if (out.bytes() != mine.sums.front().bytes()) copy_into(out, mine.sums.front());
    return {};
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    gathered_bytes_ += static_cast<double>(mine.size());
    traffic_.gather_megabytes = gathered_bytes_ / ++traffic_.gathers / megabyte;
    for (std::size_t begin = 0; begin < all.size(); begin += mine.size())
      std::memcpy(all.data() + begin, mine.data(), mine.size());
  }
  void broadcast(std::span<std::byte>, int) override {}
  void fail(std::string_view) noexcept override {}
  void throw_if_failed() override {}

  void start_step() {
    traffic_ = {};
    gathered_bytes_ = 0;
    watch_ = {};
  }
  const StepTraffic& traffic() const { return traffic_; }

 private:
  std::vector<Place> places_;
  bool in_background_;
  StepTraffic traffic_;
  double gathered_bytes_ = 0;
  Stopwatch watch_;
};

ImageSet random_images(const ClusterCase& study_case, std::uint64_t seed) {
  const bool flat = study_case.is_perceptron();
  const std::int64_t count = study_case.batch_size;
  ImageSet set;
  set.images = random_integers(flat ? Shape{count, 1, study_case.network.layers.front(), 1}
                                    : Shape{count, study_case.side, study_case.side, 3},
                               0, 256, {.seed = seed, .stream = 0, .dtype = DType::u8});
  const std::int64_t classes = flat ? study_case.network.layers.back() : ClusterCase::classes;
  set.labels = random_integers({count}, 0, classes, {.seed = seed, .stream = 1, .dtype = DType::i32});
  set.classes.resize(static_cast<std::size_t>(classes));
  return set;
}

// The case on one rank, as `tandem train --ranks N` would train it: one shard per rank.
class CaseOnRank {
 public:
  CaseOnRank(const ClusterCase& study_case, const ImageSet& images, std::uint64_t seed, Group& group)
      : model_(make_model(study_case.network, seed)),
        optimizer_(model_->parameters(), {}, learning_rate),
        source_(images, plan_of(study_case, seed, group.place())),
        task_{.model = *model_,
              .optimizer = optimizer_,
              .source = source_,
              .learning_rate = learning_rate,
              .input = {.flat = study_case.is_perceptron(),
                        .height = images.images.size(1),
                        .width = images.images.size(2),
                        .channels = images.images.size(3)},
              .group = group.place().size > 1 ? &group : nullptr},
        engine_(make_engine(task_)) {}

  double run_step() { return engine_->run(steps_++, 0, 1).loss; }  // epochs of one step
  Engine& engine() { return *engine_; }
  const Module& model() const { return *model_; }

 private:
  static BatchPlan plan_of(const ClusterCase& study_case, std::uint64_t seed, const Place& place) {
    return {.samples = study_case.batch_size,
            .batch_size = study_case.batch_size,
            .seed = seed,
            .part = {.shards = place.size, .own = part_of(place.size, place.size, place.rank)}};
  }

  std::unique_ptr<Module> model_;
  FusedOptimizer optimizer_;
  InMemorySource source_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
  std::int64_t steps_ = 0;
};

class RankMeasurement {
 public:
  RankMeasurement(const ClusterCase& study_case, std::uint64_t seed, double budget_ms, Group& group)
      : group_(group),
        stand_in_(group),
        budget_ms_(budget_ms),
        images_(random_images(study_case, seed)),
        training_(study_case, images_, seed, group) {
    if (is_alone()) return;
    without_exchange_.emplace(study_case, images_, seed, stand_in_);
  }

  RankFigures run() {
    figures_.loss = training_.run_step();
    if (without_exchange_) without_exchange_->run_step();
    const std::int64_t repetitions = agreed_repetitions();
    for (std::int64_t i = 0; i < repetitions; ++i) add_steps();
    training_.engine().store();
    check_same_values(group_, training_.model().state_dict());
    figures_.engine = training_.engine().description();
    if (is_alone()) {
      figures_.rank_ms = {timing_of(figures_.step_ms).median_ms};
      return figures_;
    }
    note_traffic();
    gather_rank_times();
    for (std::int64_t i = 0; i < std::max<std::int64_t>(repetitions, 5); ++i) add_exchange();
    add_samples();
    return figures_;
  }

 private:
  bool is_alone() const { return group_.place().size == 1; }

  // Between barriers: until the slowest rank is done.
  template <class F>
  double time_of(F&& work) {
    group_.barrier();
    const Stopwatch watch;
    work();
    own_ms_ = watch.elapsed_ms();
    group_.barrier();
    return watch.elapsed_ms();
  }

  // Those of rank 0.
  std::int64_t agreed_repetitions() {
    const double step_ms = time_of([&] { training_.run_step(); });
    auto count = static_cast<std::int64_t>(std::clamp(budget_ms_ / (2 * std::max(step_ms, 1e-3)), 2.0, 30.0));
    group_.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
    return count;
  }

  double run_without_exchange() {
    return time_of([&] {
      stand_in_.start_step();
      without_exchange_->run_step();
    });
  }

  void add_steps() {
    figures_.step_ms.push_back(time_of([&] { training_.run_step(); }));
    if (is_alone()) return;
    figures_.without_ms.push_back(run_without_exchange());
    compute_ms_.push_back(own_ms_);
  }

  // What a step sends, and when its buckets are ready for ranks of other nodes: the median of a few steps.
  void note_traffic() {
    const bool in_background = stand_in_.set_in_background(true);
    std::vector<std::vector<double>> ready_ms;
    for (int i = 0; i < 5; ++i) {
      run_without_exchange();
      figures_.traffic = stand_in_.traffic();
      ready_ms.resize(figures_.traffic.buckets.size());
      for (std::size_t bucket = 0; bucket < ready_ms.size(); ++bucket)
        ready_ms[bucket].push_back(figures_.traffic.buckets[bucket].ready_ms);
    }
    for (std::size_t bucket = 0; bucket < ready_ms.size(); ++bucket)
      figures_.traffic.buckets[bucket].ready_ms = timing_of(ready_ms[bucket]).median_ms;
    stand_in_.set_in_background(in_background);
  }

  void gather_rank_times() {
    const double mine = timing_of(compute_ms_).median_ms;
    figures_.rank_ms.resize(static_cast<std::size_t>(group_.place().size));
    group_.all_gather(std::as_bytes(std::span(&mine, 1)),
                      std::as_writable_bytes(std::span(figures_.rank_ms)));
  }

  Tensor floats(double megabytes) const {
    return zeros({std::max<std::int64_t>(1, std::llround(megabytes * megabyte / 4))}, DType::f32);
  }
  Work reduce(const Tensor& tensor) { return group_.reduce({group_.place().size, {tensor}}, tensor); }
  void gather(std::size_t bytes) {
    const std::vector<std::byte> mine(bytes);
    std::vector<std::byte> all(bytes * static_cast<std::size_t>(group_.place().size));
    group_.all_gather(mine, all);
  }

  // All that a step exchanges.
  void add_exchange() {
    const StepTraffic& traffic = figures_.traffic;
    if (buckets_.empty())
      for (const StepTraffic::Bucket& bucket : traffic.buckets) buckets_.push_back(floats(bucket.megabytes));
    figures_.exchange_ms.push_back(time_of([&] {
      std::vector<Work> works;
      for (const Tensor& bucket : buckets_) works.push_back(reduce(bucket));
      for (Work& work : works) work.wait();
      for (int i = 0; i < traffic.gathers; ++i)
        gather(static_cast<std::size_t>(traffic.gather_megabytes * megabyte));
    }));
  }

  // Single exchanges of several sizes, for the model.
  void add_samples() {
    const int ranks = group_.place().size;
    const auto median = [&](auto&& work) {
      std::vector<double> times;
      for (int i = 0; i < 9; ++i) {
        time_of(work);
        times.push_back(own_ms_);
      }
      return timing_of(std::move(times)).median_ms;
    };
    for (const double megabytes : {0.004, 0.25, 1.0, 4.0}) {
      const Tensor tensor = floats(megabytes);
      figures_.sums.push_back({ranks, megabytes, median([&] { reduce(tensor).wait(); })});
    }
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{65536}})
      figures_.gathers.push_back(
          {ranks, static_cast<double>(bytes) / megabyte, median([&] { gather(bytes); })});
  }

  Group& group_;
  StandInGroup stand_in_;
  double budget_ms_;
  ImageSet images_;
  CaseOnRank training_;
  std::optional<CaseOnRank> without_exchange_;
  RankFigures figures_;
  std::vector<double> compute_ms_;  // of this rank
  std::vector<Tensor> buckets_;
  double own_ms_ = 0;
};

}  // namespace

RankFigures measure_ranks(const ClusterCase& study_case, int ranks, double budget_ms,
                          const StudyOptions& options) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "figures.json";
  LocalRanksOptions launch{
      .ranks = ranks,
      .arguments = {"tandem", "cluster-rank", study_case.name(), fmt::format("{}", budget_ms),
                    std::to_string(options.seed), file.string()}};
  if (!options.program.empty()) launch.program = options.program;
  const int status = run_local_ranks(launch);
  check(std::filesystem::exists(file), "[study cluster] {} ranks ended with status {}", ranks, status);
  const auto json =
      nlohmann::json::parse(read_file("study cluster", file, 1 << 24), nullptr, /*allow_exceptions=*/false);
  check(json.is_object(), "[study cluster] {} ranks wrote no figures", ranks);
  check(!json.contains("error"), "[study cluster] {} ranks: {}", ranks, json.value("error", ""));
  return json.get<RankFigures>();
}

int run_cluster_rank(const std::vector<std::string>& words) {
  if (words.size() != 5) return 2;
  hide_messages();
  end_with_parent();
  const LaunchedRank launched = detect_launch(process_environment());
  const bool is_first = launched.place.rank == 0;
  const auto write = [&](const nlohmann::json& json) {
    if (is_first) write_file("study cluster", words[4], json.dump());
  };
  std::unique_ptr<Group> group;
  try {
    group = launched.place.size > 1 ? connect_group(launched, {}) : solo_group();
    const ClusterCase study_case = parse_cluster_case(words[1]);
    RankMeasurement measurement(study_case, parse_number<std::uint64_t>(words[3]).value_or(1),
                                parse_number<double>(words[2]).value_or(0), *group);
    write(measurement.run());
    group->barrier();
    return 0;
  } catch (const std::exception& error) {
    if (group) group->fail(error.what());
    write({{"error", error.what()}});
    std::_Exit(1);  // what waits for a lost rank is not waited for
  }
}

}  // namespace tandem
