#include "tandem/train/pretrain/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/dataset.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/data/photo_store.h"
#include "tandem/data/synthetic/scenes.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/gather_kernel.h"
#include "tandem/tensor/copy.h"
#include "tandem/text/format_number.h"

namespace tandem::detail {
namespace {

constexpr int views = 2;

class SceneViews : public ViewSource {
 public:
  explicit SceneViews(const PretrainOptions& options)
      : renderer_(options.batch_size, scene_options(options), *options.device),
        first_(zeros({1}, DType::i64, *options.device)) {}

  std::int64_t image_count() const override { return 0; }
  void prepare(std::int64_t step) override {
    const std::int64_t scenes = renderer_.pictures() / views;
    copy_into(first_, full({1}, static_cast<double>(step * scenes), DType::i64, first_.device()));
  }
  void render() override { renderer_.render(first_); }

  const Tensor& images() const override { return renderer_.images(); }
  Tensor attributes() const override { return renderer_.attributes(); }
  std::vector<std::int64_t> attribute_sizes() const override { return SceneRenderer::attribute_sizes(); }
  std::string description() const override { return "rendered scenes"; }

 private:
  static SceneOptions scene_options(const PretrainOptions& options) {
    SceneOptions scenes{.seed = options.seed,
                        .size = options.image_size,
                        .views = views,
                        .min_area = options.min_area,
                        .jitter = options.jitter};
    if (!options.kinds.empty()) scenes.kinds = scene_shares(options.kinds);
    return scenes;
  }

  SceneRenderer renderer_;
  Tensor first_;  // the number of the first scene of the step
};

// Two sources that read the same photographs in the same order and transform them differently.
class PhotoViews : public ViewSource {
 public:
  PhotoViews(std::shared_ptr<const Dataset> photographs, const PretrainOptions& options,
             const MessageFunction& on_message)
      : count_(photographs->size()), batch_size_(options.batch_size) {
    const Device device = *options.device;
    const std::int64_t side = options.image_size;
    images_ = Tensor::empty({views * batch_size_, side, side, 3}, DType::u8, device);
    BatchPlan plan{.samples = count_,
                   .batch_size = batch_size_,
                   .batches_per_epoch = options.steps,
                   .seed = options.seed};
    LoaderOptions loading{.workers = workers_per_view(options), .epochs = 1, .on_message = on_message};
    const auto samples = photographs->sample_store();
    for (plan.view = 0; plan.view < views; ++plan.view)
      sources_.push_back(make_source(samples, plan, Transform(view_recipe(options)), device, loading));
  }

  std::int64_t image_count() const override { return count_; }
  void prepare(std::int64_t step) override {
    for (std::size_t view = 0; view < sources_.size(); ++view) load(view, step);
  }
  const Tensor& images() const override { return images_; }
  std::string description() const override {
    return fmt::format("{} photographs, transformed {}", format_count(count_), sources_[0]->description());
  }
  std::vector<SkippedSample> skipped() const override { return sources_[0]->skipped(); }

 private:
  static PhotoRecipe view_recipe(const PretrainOptions& options) {
    const double jitter = options.jitter;
    return {.height = static_cast<int>(options.image_size),
            .width = static_cast<int>(options.image_size),
            .fit = PhotoFit::crop,
            .crop_scale = {options.min_area, 1},
            .flip = 0.5,
            .jitter = {.brightness = 0.8 * jitter,
                       .contrast = 0.8 * jitter,
                       .saturation = 0.8 * jitter,
                       .hue = 0.2 * jitter}};
  }

  // Both views have workers of their own.
  static int workers_per_view(const PretrainOptions& options) {
    return (options.workers.value_or(default_worker_count()) + views - 1) / views;
  }

  void load(std::size_t view, std::int64_t step) {
    const std::int64_t bytes = images_.numel() / images_.size(0);
    std::byte* const to = images_.bytes() + static_cast<std::int64_t>(view) * batch_size_ * bytes;
    const StreamView stream = current_stream(images_.device());
    for (std::int64_t done = 0; done < batch_size_;) {
      const SourceBlock block = sources_[view]->next_block(0, step * batch_size_ + done, batch_size_ - done);
      on_backend(stream.device, "pretrain", [&]<Backend B>() {
        gather_rows_kernel<B>({.dtype = DType::i32,
                               .data = reinterpret_cast<const std::byte*>(block.samples),
                               .count = block.count,
                               .table_rows = block.image_count},
                              to + done * bytes, reinterpret_cast<const std::byte*>(block.images), bytes,
                              stream);
      });
      done += block.count;
    }
  }

  std::int64_t count_, batch_size_;
  std::vector<std::unique_ptr<BatchSource>> sources_;  // one per view
  Tensor images_;
};

std::shared_ptr<const Dataset> find_photographs(const std::string& folder,
                                                const MessageFunction& on_message) {
  const ImageList found = list_images(folder);
  const std::vector<std::int32_t> labels(found.files.size());
  auto photographs =
      std::make_shared<const PhotoDataset>(found.files, labels, std::vector<std::string>{"photograph"});
  const std::int64_t unreadable = std::ssize(photographs->photos()->bad());
  const std::int64_t readable = photographs->size() - unreadable;
  check(readable >= 2,
        "[pretrain] {}: expected 2 or more images that can be read, because each is compared with the "
        "others, got {}",
        folder, readable);
  if (on_message && unreadable > 0)
    on_message(fmt::format("{} of {} images cannot be read and are left out", format_count(unreadable),
                           format_count(photographs->size())));
  return photographs;
}

}  // namespace

std::unique_ptr<ViewSource> make_view_source(PretrainOptions& options, const MessageFunction& on_message) {
  const std::int64_t wanted = options.device->is_cuda() ? 1024 : 64;
  if (options.data == "scenes") {
    if (options.batch_size == 0) options.batch_size = wanted;
    return std::make_unique<SceneViews>(options);
  }
  const auto photographs = find_photographs(options.data, on_message);
  const std::int64_t count = photographs->size();
  if (options.batch_size == 0) options.batch_size = std::min(wanted, count);
  check(options.batch_size <= count,
        "[pretrain] expected a batch of at most the {} images of {}, got {}: an image must not be compared "
        "with itself",
        format_count(count), options.data, options.batch_size);
  return std::make_unique<PhotoViews>(photographs, options, on_message);
}

}  // namespace tandem::detail
