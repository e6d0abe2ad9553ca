#include "tandem/study/determinism.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/loader/augmented_source.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/study/batch_hash.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

bool is_cubic(const Recipe& recipe) {
  return std::any_of(recipe.begin(), recipe.end(),
                     [](const AugmentStep& step) { return step.interpolation == Interpolation::cubic; });
}

// Copies device memory to the host.
template <class T>
std::vector<T> copy_to_host(const T* data, std::int64_t count, Device device) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const StreamView stream = current_stream(device);
  on_backend(device, "verify-determinism",
             [&]<Backend B>() { copy_bytes<B>(values.data(), data, values.size() * sizeof(T), stream); });
  stream.synchronize();
  return values;
}

// The rows for worker counts and kinds, and for GPUs: images copied there, and images augmented there.
class Verification {
 public:
  Verification(std::shared_ptr<const detail::SampleStore> samples, const DeterminismOptions& options)
      : samples_(std::move(samples)),
        image_size_(samples_->image_size(options.transform).bytes()),
        options_(options),
        plan_{.samples = samples_->count(), .batch_size = options.batch_size, .seed = options.seed} {
    check(options.workers >= 1, "[verify-determinism] expected at least 1 worker, got {}", options.workers);
    check_batch_plan(plan_);
    const std::int64_t some_steps = std::max<std::int64_t>(1, plan_.steps() / 8);
    whole_ = {0, 0, plan_.positions()};
    beginning_ = {1, 0, std::min(some_steps * plan_.batch_size, plan_.positions())};
  }

  void add_all_workers() {
    add_workers(0, WorkerKind::thread);
    std::vector<int> counts{1, 2, options_.workers};
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (const int count : counts) add_workers(count, WorkerKind::thread);
    add_workers(options_.workers, WorkerKind::process);
    add_resume();
  }

  void skip_gpus(const std::string& reason) { rows_.push_back({.label = "on a GPU", .skip_reason = reason}); }

  std::vector<DeterminismRow> take_rows() { return std::move(rows_); }

  void add_device(Device device) {
    add_row(fmt::format("{} threads, copied to {}", options_.workers, device.to_string()),
            [&](BatchHashes& hashes) {
              DevicePrefetcher source(samples_, plan_, options_.transform,
                                      loader_options(options_.workers, WorkerKind::thread), device);
              add_source(source, hashes);
            });
    const std::unique_ptr<BatchSource> source =
        samples_->device_source(plan_, options_.transform, device, nullptr);
    if (!source) return;
    std::optional<int> difference;
    add_row(fmt::format("augmented on {}", device.to_string()),
            [&](BatchHashes& hashes) { difference = add_source(*source, hashes); });
    DeterminismRow& row = rows_.back();
    if (row.same) return;
    row.max_pixel_difference = difference;
    row.same = is_cubic(options_.transform.pixels()) && difference && *difference <= 1;
  }

 private:
  LoaderOptions loader_options(int workers, WorkerKind kind) const {
    LoaderOptions options;
    options.workers = workers;
    options.kind = kind;
    options.epochs = 2;
    options.program = options_.program;
    options.on_message = options_.on_message;
    return options;
  }

  std::unique_ptr<Loader> loader(int workers, WorkerKind kind) const {
    return std::make_unique<Loader>(samples_, plan_, options_.transform, loader_options(workers, kind));
  }

  // `fill` adds all batches. The batches of the first row are the expected ones.
  template <class F>
  void add_row(const std::string& label, F&& fill) {
    BatchHashes hashes(plan_, image_size_);
    const Stopwatch watch;
    fill(hashes);
    const double seconds = watch.elapsed_ms() / 1000;
    if (rows_.empty()) expected_ = hashes.batches();
    DeterminismRow row{.label = label,
                       .skip_reason = {},
                       .batches = static_cast<std::int64_t>(hashes.batches().size()),
                       .images_per_s = static_cast<double>(hashes.images()) / std::max(seconds, 1e-9),
                       .hash = hashes.combined()};
    row.first_difference = first_difference(expected_, hashes.batches());
    row.same = row.first_difference < 0;
    rows_.push_back(std::move(row));
  }

  void add_workers(int count, WorkerKind kind) {
    const bool threads = kind == WorkerKind::thread;
    const std::string label = count == 0 ? "no workers"
                                         : fmt::format("{} {}{}", count, threads ? "thread" : "process",
                                                       count == 1 ? ""
                                                       : threads  ? "s"
                                                                  : "es");
    add_row(label, [&](BatchHashes& hashes) {
      const std::unique_ptr<Loader> one = loader(count, kind);
      hashes.add(*one, whole_);
      hashes.add(*one, beginning_);
    });
  }

  void add_resume() {
    add_row(fmt::format("{} threads, resumed halfway", options_.workers), [&](BatchHashes& hashes) {
      // One batch past the middle, so that the stop is not at a block boundary of the loader.
      const std::int64_t middle = std::min(plan_.steps() / 2 + 1, plan_.steps()) * plan_.batch_size;
      const std::int64_t stop = std::min(middle, plan_.positions());
      hashes.add(*loader(options_.workers, WorkerKind::thread), {0, 0, stop});
      const std::unique_ptr<Loader> after = loader(options_.workers, WorkerKind::thread);
      hashes.add(*after, {0, stop, plan_.positions()});
      hashes.add(*after, beginning_);
    });
  }

  // Hashes what the source delivers. Returns the maximum pixel difference from the expected images, or
  // nothing if samples or labels differ.
  std::optional<int> add_source(BatchSource& source, BatchHashes& hashes) {
    const Device device = source.device();
    const std::unique_ptr<Loader> reference = loader(0, WorkerKind::thread);
    std::optional<int> max_difference = 0;
    for (const PositionRange& range : {whole_, beginning_})
      for (std::int64_t first = range.begin; first < range.end;) {
        const SourceBlock block = source.next_block(range.epoch, first, range.end - first);
        const std::vector<std::uint8_t> stored =
            copy_to_host(block.images, block.image_count * source.image_size(), device);
        const std::vector<std::int32_t> rows = copy_to_host(block.samples, block.count, device);
        const std::vector<std::int32_t> labels = copy_to_host(block.labels, block.count, device);
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(block.count * source.image_size()));
        for (std::int64_t i = 0; i < block.count; ++i)
          std::copy_n(stored.begin() + rows[static_cast<std::size_t>(i)] * source.image_size(),
                      source.image_size(), pixels.begin() + i * source.image_size());
        // Blocks do not carry sample indices; recompute the order on this device.
        const Tensor order = Tensor::empty({block.count}, DType::i32, device);
        fill_order(plan_, range.epoch, first, order);
        const std::vector<std::int32_t> samples = order.to_vector<std::int32_t>();
        const HostBlock host{range.epoch, first, block.count, pixels.data(), samples.data(), labels.data()};
        const std::size_t before = hashes.batches().size();
        hashes.add(host);
        const auto from = static_cast<std::ptrdiff_t>(before);
        const bool equal =
            std::equal(hashes.batches().begin() + from, hashes.batches().end(), expected_.begin() + from);
        if (!equal && max_difference) {
          const std::optional<int> here = difference_from(*reference, host);
          max_difference = here ? std::optional(std::max(*max_difference, *here)) : std::nullopt;
        }
        first += block.count;
      }
    return max_difference;
  }

  std::optional<int> difference_from(Loader& reference, const HostBlock& got) const {
    const std::int64_t size = image_size_;
    int max_difference = 0;
    for (std::int64_t offset = 0; offset < got.count;) {
      const LoadedBlock block = reference.acquire(got.epoch, got.first + offset);
      const std::int64_t count = std::min(block.count, got.count - offset);
      const bool same = std::equal(block.samples, block.samples + count, got.samples + offset) &&
                        std::equal(block.labels, block.labels + count, got.labels + offset);
      for (std::int64_t i = 0; same && i < count * size; ++i)
        max_difference = std::max(max_difference, std::abs(block.images[i] - got.images[offset * size + i]));
      reference.release(block);
      if (!same) return std::nullopt;
      offset += count;
    }
    return max_difference;
  }

  const std::shared_ptr<const detail::SampleStore> samples_;
  const std::int64_t image_size_;
  const DeterminismOptions& options_;
  const BatchPlan plan_;
  PositionRange whole_;      // the first epoch
  PositionRange beginning_;  // of the second epoch
  std::vector<std::string> expected_;
  std::vector<DeterminismRow> rows_;
};

std::string verdict(const DeterminismRow& row, std::int64_t steps) {
  if (!row.skip_reason.empty()) return "not run";
  const std::string levels = row.max_pixel_difference ? fmt::format("{} level{}", *row.max_pixel_difference,
                                                                    *row.max_pixel_difference == 1 ? "" : "s")
                                                      : std::string();
  if (row.same) return levels.empty() ? "same" : "within " + levels;
  return fmt::format("DIFFERENT from batch {} of epoch {} on{}", row.first_difference % steps + 1,
                     row.first_difference / steps + 1, levels.empty() ? "" : ", by up to " + levels);
}

}  // namespace

std::vector<DeterminismRow> verify_determinism(const Dataset& dataset, const DeterminismOptions& options) {
  Verification all(dataset.sample_store(), options);
  all.add_all_workers();
  if (options.transform.resizes())
    all.skip_gpus("for photographs its pixels may differ by one level");
  else if (cuda_device_count() == 0)
    all.skip_gpus(why_no_cuda());
  else
    for (int i = 0; i < cuda_device_count(); ++i) all.add_device(cuda_device(i));
  return all.take_rows();
}

bool is_deterministic(const std::vector<DeterminismRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const DeterminismRow& row) { return row.same; });
}

std::string determinism_text(const std::vector<DeterminismRow>& rows, std::int64_t steps,
                             const TextStyle& style) {
  Table table{.columns = {{"augmented by"},
                          {"batches", Align::right},
                          {"images/s", Align::right},
                          {"SHA-256 of all"},
                          {"result"}},
              .rows = {}};
  std::int64_t differing = 0, ran_count = 0;
  std::string skipped;
  for (const DeterminismRow& row : rows) {
    const bool ran = row.skip_reason.empty();
    const Tone tone = !ran ? Tone::faint : row.same ? Tone::good : Tone::bad;
    differing += !row.same;
    ran_count += ran;
    if (!ran) skipped += fmt::format("Not run {}: {}.\n", row.label, row.skip_reason);
    table.rows.push_back({{},
                          {{row.label, ran ? Tone::plain : Tone::faint},
                           {ran ? format_count(row.batches) : ""},
                           {ran ? format_count(std::llround(row.images_per_s)) : ""},
                           {row.hash.substr(0, 16)},
                           {verdict(row, steps), tone}}});
  }
  const std::string sentence =
      differing == 0 ? "Every batch is the same in every configuration."
                     : fmt::format("{} of {} configurations give different batches than no workers.",
                                   differing, ran_count);
  return fmt::format("{}\n{}{}\n", format_table(table, style), skipped,
                     colorize(sentence, differing == 0 ? Tone::good : Tone::bad, style));
}

std::string determinism_json(const std::vector<DeterminismRow>& rows, std::int64_t steps,
                             const std::vector<RankRow>& ranks) {
  nlohmann::ordered_json json{{"deterministic", is_deterministic(rows) && is_deterministic(ranks)},
                              {"batches_per_epoch", steps}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const DeterminismRow& row : rows) {
    nlohmann::ordered_json one{{"label", row.label}};
    if (!row.skip_reason.empty()) {
      one["skipped"] = row.skip_reason;
    } else {
      one["batches"] = row.batches;
      one["images_per_s"] = row.images_per_s;
      one["hash"] = row.hash;
      one["same"] = row.same;
      if (row.first_difference >= 0) one["first_difference"] = row.first_difference;
      if (row.max_pixel_difference) one["max_pixel_difference"] = *row.max_pixel_difference;
    }
    json["rows"].push_back(std::move(one));
  }
  for (const RankRow& row : ranks)
    json["ranks"].push_back(
        {{"ranks", row.ranks}, {"seconds", row.seconds}, {"hash", row.hash}, {"same", row.same}});
  return json.dump(2) + "\n";
}

}  // namespace tandem
