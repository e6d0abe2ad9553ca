// The three stores, and sample_store() of the data sets.
#include "tandem/data/loader/sample_store.h"

#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/loader/augmented_source.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/engine_source.h"
#include "tandem/data/loader/photo_source.h"
#include "tandem/data/loader/worker.h"
#include "tandem/data/photo_store.h"
#include "tandem/device/driver.h"
#include "tandem/device/jpeg_engine.h"
#include "tandem/device/on_backend.h"
#include "tandem/image/image_decoder.h"

namespace tandem::detail {
namespace {

// Whether `bytes` are at most half of the free memory of a device.
bool fits(std::int64_t bytes, Device device) {
  std::size_t free = 0;
  on_backend(device, "loader", [&]<Backend B>() { free = available_memory<B>(device); });
  return static_cast<std::size_t>(bytes) <= free / 2;
}

// In the shared memory of an array, before the labels and the images.
struct alignas(64) ArrayHeader {
  ImageSize size;
};

class ArrayStore : public SampleStore {
 public:
  explicit ArrayStore(const ImageSet& images) : images_(images) {
    check_image_set(images, "loader");
    check(!images.images.device().is_cuda(), "[loader] expected images on the cpu, got images on {}",
          images.images.device().to_string());
    for (int axis = 1; axis < 4; ++axis)
      check(images.images.size(axis) <= std::numeric_limits<std::int32_t>::max(),
            "[loader] expected smaller images, got {}", images.images.shape().to_string());
    images_.images = images.images.contiguous();
    images_.labels = images.labels.contiguous();
  }

  std::int64_t count() const override { return images_.count(); }
  std::string describe(std::int32_t sample) const override { return "sample " + std::to_string(sample); }

  ImageSize image_size(const Transform& transform) const override {
    const ImageSize size = stored_size();
    check(!transform.resizes() || size.channels == 1 || size.channels == 3,
          "[loader] expected gray or RGB images for a transform that resizes, got {} channels",
          size.channels);
    return transform.output_size(size);
  }

  std::unique_ptr<SampleReader> make_reader(const Transform& transform, const ImageSize&) const override {
    return make_array_reader(transform, {.size = stored_size(),
                                         .images = images_.images.data<std::uint8_t>(),
                                         .labels = images_.labels.data<std::int32_t>()});
  }

  SampleFormat format() const override { return SampleFormat::array; }

  std::shared_ptr<const SharedMemory> worker_memory(std::int64_t samples) const override {
    const std::int64_t label_bytes = 4 * samples, image_bytes = samples * images_.image_size();
    const auto memory = std::make_shared<SharedMemory>(
        static_cast<std::int64_t>(sizeof(ArrayHeader)) + label_bytes + image_bytes,
        "the data set for process workers", "use thread workers or fewer images");
    const ArrayHeader header{stored_size()};
    std::byte* to = memory->data();
    std::memcpy(to, &header, sizeof(header));
    std::memcpy(to += sizeof(header), images_.labels.bytes(), static_cast<std::size_t>(label_bytes));
    std::memcpy(to += label_bytes, images_.images.bytes(), static_cast<std::size_t>(image_bytes));
    return memory;
  }

  std::unique_ptr<BatchSource> device_source(const BatchPlan& plan, const Transform& transform, Device device,
                                             Timeline* timeline) const override {
    if (transform.resizes() ||
        (device.is_cuda() && (transform.cpu_only() || !fits(images_.images.numel(), device))))
      return nullptr;
    const ImageSet there = images_.slice(0, plan.samples).to(device);
    if (transform.empty()) return std::make_unique<InMemorySource>(there, plan);
    return std::make_unique<DeviceAugmentedImages>(there, plan, transform.pixels(), timeline);
  }

 private:
  ImageSize stored_size() const {
    return {static_cast<int>(images_.images.size(1)), static_cast<int>(images_.images.size(2)),
            static_cast<int>(images_.images.size(3))};
  }

  ImageSet images_;
};

class PhotoSampleStore : public SampleStore {
 public:
  explicit PhotoSampleStore(std::shared_ptr<const PhotoStore> photos) : photos_(std::move(photos)) {}

  std::int64_t count() const override { return table().count(); }
  std::string describe(std::int32_t sample) const override { return table().path(sample); }

  ImageSize image_size(const Transform& transform) const override {
    return transform.output_size(transform.resizes() ? ImageSize{} : first_size());
  }

  std::unique_ptr<SampleReader> make_reader(const Transform& transform,
                                            const ImageSize& size) const override {
    return make_photo_reader(transform, size, table());
  }

  SampleFormat format() const override { return SampleFormat::photos; }
  std::shared_ptr<const SharedMemory> worker_memory(std::int64_t) const override {
    return {photos_, &photos_->memory()};
  }
  std::span<const BadSample> bad() const override { return photos_->bad(); }
  bool fails_on_bad() const override { return photos_->on_bad_image() == OnBadImage::fail; }

  std::unique_ptr<BatchSource> device_source(const BatchPlan& plan, const Transform& transform, Device device,
                                             Timeline* timeline) const override {
    if (!transform.resizes() || !table().decoded()) return nullptr;
    if (device.is_cuda() && !fits(table().pixel_bytes(), device)) return nullptr;
    return std::make_unique<DevicePhotos>(photos_, plan, transform.photo(), device, timeline);
  }

  std::unique_ptr<BatchSource> engine_source(const BatchPlan& plan, const Transform& transform, Device device,
                                             const LoaderOptions& options) const override {
    // A file is not parsed here where a confined decoder does it.
    if (!device.is_cuda() || !table().decode_options().hardware || table().decoded() ||
        !transform.resizes() || transform.cpu_only() || image_decoder() != nullptr)
      return nullptr;
    const auto none = [&](const std::string& why) {
      if (options.on_message) options.on_message("JPEGs are decoded on the CPU: " + why);
      return nullptr;
    };
    if (!fits(EngineDecodedPhotos::device_bytes(plan, transform.photo(), options), device))
      return none(device.to_string() + " has too little free memory");
    std::string problem;
    std::unique_ptr<JpegEngine> engine = open_jpeg_engine(device, problem);
    if (!engine) return none(problem);
    return std::make_unique<EngineDecodedPhotos>(photos_, plan, transform.photo(), options, device,
                                                 std::move(engine));
  }

 private:
  const PhotoTable& table() const { return photos_->table(); }

  // The size of the first readable photograph.
  ImageSize first_size() const {
    constexpr std::int64_t max_side = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t i = 0; i < count(); ++i) {
      std::int64_t height = 0, width = 0;
      if (table().decoded()) {
        height = table().location(i).height;
        width = table().location(i).width;
      } else {
        try {
          const PhotoFile file(table().path(i), table().decode_options());
          height = file.height();
          width = file.width();
        } catch (const Error&) {  // a worker reports it
        }
      }
      if (height > 0 && height <= max_side && width <= max_side)
        return {.height = static_cast<int>(height), .width = static_cast<int>(width), .channels = 3};
    }
    fail("[loader] expected photographs that can be read, got none in {} files", count());
  }

  std::shared_ptr<const PhotoStore> photos_;
};

class DatasetStore : public SampleStore {
 public:
  explicit DatasetStore(std::shared_ptr<const Dataset> dataset) : dataset_(std::move(dataset)) {}

  std::int64_t count() const override { return dataset_->size(); }
  std::string describe(std::int32_t sample) const override { return dataset_->describe(sample); }

  ImageSize image_size(const Transform& transform) const override {
    if (transform.resizes()) return transform.output_size({});
    try {
      const Image first = dataset_->image(0);
      constexpr std::int64_t max_side = std::numeric_limits<std::int32_t>::max();
      check((first.channels == 1 || first.channels == 3) && first.height > 0 && first.height <= max_side &&
                first.width > 0 && first.width <= max_side,
            "expected a gray or RGB image, got {}x{} with {} channels", first.height, first.width,
            first.channels);
      return {static_cast<int>(first.height), static_cast<int>(first.width), first.channels};
    } catch (...) {
      fail("[loader] {}: {}", describe(0), exception_text());
    }
  }

  std::unique_ptr<SampleReader> make_reader(const Transform& transform,
                                            const ImageSize& size) const override {
    return make_dataset_reader(transform, size, dataset_);
  }

  SampleFormat format() const override { return SampleFormat::factory; }

  // The name, a zero byte and the argument.
  std::shared_ptr<const SharedMemory> worker_memory(std::int64_t) const override {
    const std::optional<DatasetFactoryCall> call = dataset_->factory_call();
    check(call.has_value(),
          "[loader] expected a data set with a factory_call() for process workers, got one without: override "
          "it and register its factory, or use thread workers");
    const std::string text = call->name + '\0' + call->argument;
    const auto memory =
        std::make_shared<SharedMemory>(std::ssize(text), "the data set for process workers", "use threads");
    std::memcpy(memory->data(), text.data(), text.size());
    return memory;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
};

std::unique_ptr<SampleReader> attach_array(const AttachedSamples& samples,
                                           std::span<const std::byte> memory) {
  ArrayHeader header;
  const std::int64_t label_bytes = 4 * samples.samples;
  std::int64_t needed = sizeof(header);
  if (memory.size() >= sizeof(header)) {
    std::memcpy(&header, memory.data(), sizeof(header));
    needed += label_bytes + samples.samples * header.size.bytes();
  }
  check(static_cast<std::int64_t>(memory.size()) >= needed &&
            samples.transform.output_size(header.size) == samples.size,
        "[worker] expected {} images, got {} bytes", samples.samples, memory.size());
  const std::byte* const labels = memory.data() + sizeof(header);
  return make_array_reader(samples.transform,
                           {.size = header.size,
                            .images = reinterpret_cast<const std::uint8_t*>(labels + label_bytes),
                            .labels = reinterpret_cast<const std::int32_t*>(labels)});
}

}  // namespace

std::unique_ptr<BatchSource> SampleStore::device_source(const BatchPlan&, const Transform&, Device,
                                                        Timeline*) const {
  return nullptr;
}

std::unique_ptr<BatchSource> SampleStore::engine_source(const BatchPlan&, const Transform&, Device,
                                                        const LoaderOptions&) const {
  return nullptr;
}

std::shared_ptr<const SampleStore> sample_store(const ImageSet& images) {
  return std::make_shared<const ArrayStore>(images);
}

std::shared_ptr<const SampleStore> sample_store(std::shared_ptr<const PhotoStore> photos) {
  return std::make_shared<const PhotoSampleStore>(std::move(photos));
}

std::shared_ptr<const SampleStore> sample_store(std::shared_ptr<const Dataset> dataset) {
  return std::make_shared<const DatasetStore>(std::move(dataset));
}

std::unique_ptr<SampleReader> attach_reader(const AttachedSamples& samples,
                                            std::span<const std::byte> memory) {
  if (samples.format == SampleFormat::array) return attach_array(samples, memory);
  if (samples.format == SampleFormat::photos) {
    const PhotoTable photos = PhotoTable::attach(memory);
    check(photos.count() >= samples.samples, "[worker] expected {} photographs, got {}", samples.samples,
          photos.count());
    return make_photo_reader(samples.transform, samples.size, photos);
  }
  const std::string_view text(reinterpret_cast<const char*>(memory.data()), memory.size());
  const std::size_t end = text.find('\0');
  check(end != text.npos, "[worker] expected the name of a data set factory, got {} bytes", text.size());
  std::shared_ptr<const Dataset> dataset =
      make_dataset({.name = std::string(text.substr(0, end)), .argument = std::string(text.substr(end + 1))});
  check(dataset->size() >= samples.samples, "[worker] expected {} samples from the factory '{}', got {}",
        samples.samples, text.substr(0, end), dataset->size());
  return make_dataset_reader(samples.transform, samples.size, std::move(dataset));
}

}  // namespace tandem::detail

namespace tandem {

// A data set held by a shared_ptr is kept alive. The others must outlive the store.
std::shared_ptr<const detail::SampleStore> Dataset::sample_store() const {
  std::shared_ptr<const Dataset> self = weak_from_this().lock();
  if (!self) self = std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>(), this);
  return detail::sample_store(std::move(self));
}

std::shared_ptr<const detail::SampleStore> ImageDataset::sample_store() const {
  return detail::sample_store(images_);
}

std::shared_ptr<const detail::SampleStore> PhotoDataset::sample_store() const {
  return detail::sample_store(photos_);
}

}  // namespace tandem
