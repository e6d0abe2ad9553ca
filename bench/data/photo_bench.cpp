// Images per second from a folder of JPEGs (500×500, 4:2:0, quality 90) to training batches of 224×224: every
// file read and the crop's box decoded exactly or scaled in the DCT domain, or all files decoded up front;
// and from packed sets of the same files, which are mapped, larger than caches, and also copied to a GPU. The
// image is that of bench/peers/peer_torch_folder.py: random colors, enlarged sixteen times.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/data/block_reader.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/data/pack.h"
#include "tandem/data/walk_images.h"
#include "tandem/device/stream.h"
#include "tandem/image/resize.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

constexpr std::int64_t photo_side = 500, batch_size = 64;
constexpr int photo_count = 1024, packed_count = 4096;

class JpegFolder {
 public:
  explicit JpegFolder(int count = photo_count) {
    // In memory where possible, as in the peer's benchmark.
    const std::filesystem::path memory = "/dev/shm";
    const auto parent =
        std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "tandem-bench-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr, "[bench] cannot make the folder {}", name);
    path_ = name;
    Image colors = make_image(photo_side / 16, photo_side / 16, 3);
    for (std::size_t i = 0; i < colors.pixels.size(); ++i)
      colors.pixels[i] = static_cast<std::uint8_t>(random_block(1, 0, i).word[0]);
    const std::vector<std::uint8_t> jpeg =
        write_jpeg(resize(colors, photo_side, photo_side, ResizeFilter::bicubic), {});
    for (int i = 0; i < count; ++i) {
      files.push_back(path_ / fmt::format("{}.jpg", i));
      std::ofstream(files.back(), std::ios::binary)
          .write(reinterpret_cast<const char*>(jpeg.data()), static_cast<std::streamsize>(jpeg.size()));
    }
  }
  ~JpegFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  JpegFolder(const JpegFolder&) = delete;
  JpegFolder& operator=(const JpegFolder&) = delete;

  // The paths in a packed set of the files.
  std::vector<std::filesystem::path> pack(PackStore store, std::int64_t side) const {
    const std::filesystem::path set = path_ / "set.tandem";
    pack_images(path_, set, {.store = store, .side = side});
    return walk_images(set).files;
  }

  std::vector<std::filesystem::path> files;

 private:
  std::filesystem::path path_;
};

enum class How { exact, scaled, decoded };

void load(benchmark::State& state, const std::vector<std::filesystem::path>& files,
          const PhotoStoreOptions& options, WorkerKind kind) {
  const auto store =
      std::make_shared<const PhotoStore>(files, std::vector<std::int32_t>(files.size()), options);
  const BatchPlan plan{.samples = std::ssize(files), .batch_size = batch_size};
  Loader loader(detail::sample_store(store), plan, training_photo_recipe(224),
                {.workers = static_cast<int>(state.range(0)), .kind = kind});
  BlockReader reader(loader, plan);
  for (int i = 0; i < 2 * loader.slots(); ++i) reader.next();  // until every worker is running
  std::int64_t images = 0;
  for (auto _ : state) images += reader.next();
  state.SetItemsProcessed(images);
}

void load(benchmark::State& state, How how, WorkerKind kind) {
  const JpegFolder folder;
  PhotoStoreOptions options;
  options.max_decoded_bytes = how == How::decoded ? std::int64_t{2} << 30 : 0;
  options.decode.scaled = how == How::scaled;
  load(state, folder.files, options, kind);
}

// The paths in a packed set, which is made once.
const std::vector<std::filesystem::path>& packed_files(PackStore store, std::int64_t side) {
  struct Packed {
    explicit Packed(int count) : folder(count) {}
    JpegFolder folder;
    std::vector<std::filesystem::path> files;
  };
  static std::map<std::pair<PackStore, std::int64_t>, Packed> sets;
  const auto found = sets.find({store, side});
  if (found != sets.end()) return found->second.files;
  Packed& made =
      sets.try_emplace({store, side}, store == PackStore::pixels ? packed_count : photo_count).first->second;
  return made.files = made.folder.pack(store, side);
}

void load_packed(benchmark::State& state, PackStore store, WorkerKind kind, std::int64_t side = 256) {
  load(state, packed_files(store, side), {.max_decoded_bytes = 0}, kind);
}

// Batches of 256 in the memory of a GPU, each until it has been copied.
void load_packed_to_gpu(benchmark::State& state, std::int64_t side) {
  if (cuda_device_count() == 0) return state.SkipWithError("no GPU");
  const Device device = cuda_device();
  const std::vector<std::filesystem::path>& files = packed_files(PackStore::pixels, side);
  const auto store = std::make_shared<const PhotoStore>(files, std::vector<std::int32_t>(files.size()),
                                                        PhotoStoreOptions{.max_decoded_bytes = 0});
  const BatchPlan plan{.samples = std::ssize(files), .batch_size = 256};
  const auto source = make_source(detail::sample_store(store), plan, training_photo_recipe(224), device,
                                  {.workers = static_cast<int>(state.range(0))}, false);
  std::int64_t epoch = 0, first = 0;
  const auto next = [&] {
    const std::int64_t count = source->next_block(epoch, first, plan.batch_size).count;
    current_stream(device).synchronize();
    first += count;
    if (first == plan.positions()) ++epoch, first = 0;
    return count;
  };
  for (int i = 0; i < 64; ++i) next();  // until every worker is running
  std::int64_t images = 0;
  for (auto _ : state) images += next();
  state.SetItemsProcessed(images);
}

void worker_counts(benchmark::internal::Benchmark* bench) {
  bench->Arg(0);  // on the calling thread
  for (int count = 1; count < usable_cpus(); count *= 2) bench->Arg(count);
  bench->Arg(std::max(2, usable_cpus()))->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(load, photos_exact_threads, How::exact, WorkerKind::thread)->Apply(worker_counts);
BENCHMARK_CAPTURE(load, photos_scaled_threads, How::scaled, WorkerKind::thread)->Apply(worker_counts);
BENCHMARK_CAPTURE(load, photos_decoded_threads, How::decoded, WorkerKind::thread)->Apply(worker_counts);
BENCHMARK_CAPTURE(load, photos_exact_processes, How::exact, WorkerKind::process)->Apply(worker_counts);
BENCHMARK_CAPTURE(load_packed, pixels_threads, PackStore::pixels, WorkerKind::thread)
    ->Apply(worker_counts)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed, pixels_224_threads, PackStore::pixels, WorkerKind::thread, 224)
    ->Apply(worker_counts)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed_to_gpu, pixels, 256)->Apply(worker_counts)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed_to_gpu, pixels_224, 224)->Apply(worker_counts)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed, pixels_processes, PackStore::pixels, WorkerKind::process)
    ->Apply(worker_counts)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed, jpeg_threads, PackStore::jpeg, WorkerKind::thread)
    ->Apply(worker_counts)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(load_packed, original_threads, PackStore::original, WorkerKind::thread)
    ->Apply(worker_counts)
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace tandem
