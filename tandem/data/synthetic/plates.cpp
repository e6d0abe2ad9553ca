#include "tandem/data/synthetic/plates.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/synthetic/plates_dirt.h"
#include "tandem/data/synthetic/render_counter.h"
#include "tandem/image/encode_png.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t plate_key = 0x504C4154455321;  // differs from other random streams of the same seed
constexpr std::int64_t max_plates = 10'000'000;

struct Job {
  fs::path path;
  std::uint64_t index;
  bool dirty;
};

void add_job(std::vector<Job>& jobs, const fs::path& folder, std::uint64_t index, bool dirty) {
  const char* const name = plate_class(dirty);
  jobs.push_back({folder / name / fmt::format("{}-{:06}.png", name, index % first_test_plate), index, dirty});
}

}  // namespace

const char* plate_class(bool dirty) {
  return dirty ? "dirty" : "cleaned";
}

Image render_plate(std::uint64_t seed, std::uint64_t index, bool dirty, std::int64_t size) {
  check(size >= 8 && size <= 4096, "[plates] expected a side of 8 to 4096 pixels, got {}", size);
  PlateRng rng(seed ^ plate_key, index << 1 | (dirty ? 1 : 0));
  Canvas canvas(static_cast<int>(size));
  const Light light = sample_light(rng);
  paint_table(canvas, rng);
  const Plate plate = paint_plate(canvas, light, rng);
  if (dirty) paint_dirt(canvas, plate, light, rng);
  return shade(std::move(canvas), light, rng);
}

void write_plates(const fs::path& root, const PlatesOptions& options) {
  check(options.train >= 0 && options.train <= max_plates && options.test >= 0 && options.test <= max_plates,
        "[plates] expected 0 to {} plates, got {} and {}", max_plates, options.train, options.test);
  std::error_code error;
  check(!fs::exists(root, error) || fs::is_empty(root, error),
        "[plates] {} is not empty: expected a new or empty folder to write to", one_line(root.string()));
  std::vector<Job> jobs;
  for (std::int64_t i = 0; i < options.train; ++i)
    for (const bool dirty : {false, true})
      add_job(jobs, root / "train", static_cast<std::uint64_t>(i), dirty);
  for (std::int64_t i = 0; i < options.test; ++i)
    add_job(jobs, root / "test", first_test_plate + static_cast<std::uint64_t>(i), i % 2 == 1);
  for (const char* part : {"train", "test"})
    for (const char* kind : {plate_class(false), plate_class(true)}) {
      if ((std::string_view(part) == "train" ? options.train : options.test) == 0) continue;
      fs::create_directories(root / part / kind, error);
      check(!error, "[plates] cannot make the folder {}: {}", one_line((root / part / kind).string()),
            error.message());
    }
  detail::RenderCounter counter(std::ssize(jobs));
  parallel_tasks(std::ssize(jobs), 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      const Job& job = jobs[static_cast<std::size_t>(i)];
      save_png(job.path, render_plate(options.seed, job.index, job.dirty, options.size));
      counter.add();
    };
  });
}

}  // namespace tandem
