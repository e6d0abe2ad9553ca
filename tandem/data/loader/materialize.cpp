#include "tandem/data/loader/materialize.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/sample_store.h"
#include "tandem/data/loader/worker.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// What became of a sample.
struct ReadResult {
  std::int32_t label = 0;
  bool is_bad = false;  // an unreadable photograph
  BadSample bad;        // a reason: it could not be read
};

void check_memory(std::int64_t count, const ImageSize& size) {
  const std::int64_t max_count = free_host_bytes() / 2 / size.bytes();
  check(
      count <= max_count,
      "[data] expected at most {} images of {}x{}, as many as fit into half of the free memory, got {}: use "
      "fewer, or a smaller image size",
      max_count, size.height, size.width, count);
}

ReadResult read_one(SampleReader& reader, std::int32_t sample, std::uint8_t* out) try {
  ReadResult result{.label = reader.label(sample)};
  result.is_bad = reader.is_missing(sample) ||
                  !reader.read(sample, {.sample = static_cast<std::uint32_t>(sample)}, out, result.bad);
  return result;
} catch (...) {
  return {.bad = {.sample = sample, .reason = exception_text()}};
}

}  // namespace

PhotoSet materialize_named(const Dataset& dataset, const Transform& transform) {
  const auto store = dataset.sample_store();
  const std::int64_t count = store->count();
  check(count >= 1 && count <= std::numeric_limits<std::int32_t>::max(),
        "[data] expected 1 to 2147483647 samples, got {}", count);
  const ImageSize size = store->image_size(transform);
  check_memory(count, size);
  const Tensor images = Tensor::empty({count, size.height, size.width, size.channels}, DType::u8);
  std::uint8_t* const pixels = images.data<std::uint8_t>();
  std::vector<ReadResult> results(static_cast<std::size_t>(count));
  parallel_tasks(count, 1, [&] {
    return [&, reader = std::shared_ptr(store->make_reader(transform, size))](std::int64_t i, std::int64_t) {
      results[static_cast<std::size_t>(i)] =
          read_one(*reader, static_cast<std::int32_t>(i), pixels + i * size.bytes());
    };
  });
  for (const BadSample& bad : store->bad()) results[static_cast<std::size_t>(bad.sample)].bad = bad;

  PhotoSet set;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const ReadResult& result = results[static_cast<std::size_t>(i)];
    const auto sample = static_cast<std::int32_t>(i);
    const std::string name = store->describe(sample);
    check(result.bad.reason.empty() || (result.is_bad && !store->fails_on_bad()), "[data] {}: {}",
          one_line(name), result.bad.reason);
    if (result.is_bad) {
      set.bad.push_back({sample, name, result.bad.reason, result.bad.kind});
      continue;
    }
    const auto kept = static_cast<std::int64_t>(labels.size());
    if (kept < i)
      std::memcpy(pixels + kept * size.bytes(), pixels + i * size.bytes(),
                  static_cast<std::size_t>(size.bytes()));
    labels.push_back(result.label);
    set.names.push_back(name);
  }
  check(!labels.empty(),
        "[data] expected photographs that can be read, got none in {} files, the first {}: {}", count,
        one_line(store->describe(0)), results[0].bad.reason);
  const auto kept = static_cast<std::int64_t>(labels.size());
  set.images = {.images = images.slice(0, 0, kept),
                .labels = Tensor::from(labels, {kept}),
                .classes = dataset.classes()};
  return set;
}

ImageSet materialize(const Dataset& dataset, const Transform& transform) {
  const auto* const in_memory = dynamic_cast<const ImageDataset*>(&dataset);
  if (in_memory && transform.empty()) return in_memory->images();
  return materialize_named(dataset, transform).images;
}

}  // namespace tandem
