#include "tandem/train/classifier.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
#include "tandem/device/graph_runner.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/pinned.h"
#include "tandem/image/decode.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/ops/cast.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/predict_images.h"

namespace tandem {
namespace {

constexpr std::int64_t max_pixels = LoadOptions{}.max_pixels;

void check_image(const ImageView& image) {
  check(image.pixels != nullptr, "[classifier] expected pixels, got a null pointer");
  check(image.width > 0 && image.height > 0 && image.height <= max_pixels / image.width,
        "[classifier] expected a width and height of at least 1 and at most {} pixels, got {}x{}", max_pixels,
        image.width, image.height);
  check(image.channels == 1 || image.channels == 3 || image.channels == 4,
        "[classifier] expected 1, 3 or 4 channels, got {}", image.channels);
  check(image.row_bytes >= image.width * image.channels && image.row_bytes <= INT64_MAX / image.height,
        "[classifier] expected rows at least {} bytes apart, got {}", image.width * image.channels,
        image.row_bytes);
}

// The network on a GPU for one image, with the copies from and to the host, as one captured graph.
class CapturedNetwork {
 public:
  // `network` maps u8 pixels of `shape` on the device to outputs in f32 there.
  CapturedNetwork(Device device, const Shape& shape, std::int64_t outputs,
                  std::function<Tensor(const Tensor&)> network)
      : device_(device),
        pixels_(Tensor::empty(shape, DType::u8, device)),
        result_(Tensor::empty({1, outputs}, DType::f32)),
        memory_(input_bytes() + output_bytes(), device),
        runner_(device),
        network_(std::move(network)) {}

  // Pixels for run(), in memory from which the GPU copies them.
  std::uint8_t* input() { return reinterpret_cast<std::uint8_t*>(memory_.data()); }

  const Tensor& operator()(const Tensor& pixels) {
    std::memcpy(input(), pixels.bytes(), input_bytes());
    return run();
  }

  // The result is valid until the next call.
  const Tensor& run() {
    runner_.run([this] {
      copy(pixels_.bytes(), memory_.data(), input_bytes());
      const Tensor outputs = network_(pixels_).contiguous();
      expect(outputs.numel() == result_.numel());
      copy(memory_.data() + input_bytes(), outputs.bytes(), output_bytes());
    });
    current_stream(device_).synchronize();
    std::memcpy(result_.bytes(), memory_.data() + input_bytes(), output_bytes());
    return result_;
  }

 private:
  std::size_t input_bytes() const { return static_cast<std::size_t>(pixels_.numel()); }
  std::size_t output_bytes() const { return static_cast<std::size_t>(result_.numel()) * sizeof(float); }
  void copy(void* to, const void* from, std::size_t bytes) const {
    on_backend(device_, "classifier",
               [&]<Backend B>() { copy_bytes<B>(to, from, bytes, current_stream(device_)); });
  }

  Device device_;
  Tensor pixels_, result_;
  PinnedBuffer memory_;  // the pixels, then the outputs
  GraphRunner runner_;
  std::function<Tensor(const Tensor&)> network_;
};

// Memory of one call.
struct Scratch {
  std::vector<PixelScratch> threads;
};

}  // namespace

struct Classifier::State {
  ModelInfo info;
  std::unique_ptr<Module> own_module;  // null: the caller's
  Module& module;
  Device device;
  MatmulPrecision precision;
  ModelPixels pixels;

  std::mutex scratch_mutex;
  std::vector<std::unique_ptr<Scratch>> free_scratch;
  std::mutex network_mutex;
  std::optional<CapturedNetwork> captured;

  State(ModelInfo model_info, std::unique_ptr<Module> owned, Module& used, MatmulPrecision products)
      : info(std::move(model_info)),
        own_module(std::move(owned)),
        module(used),
        device(device_of(used)),
        precision(products),
        pixels(info) {
    if (device.is_cuda() && own_module)  // the caller's may do what cannot be captured
      captured.emplace(device, pixels.shape(1), static_cast<std::int64_t>(info.classes.size()),
                       [this](const Tensor& input) { return forward(input); });
    prepare();
  }

  // Checks the model's outputs, folds its weights and, on a GPU, captures the graph.
  void prepare() {
    const Tensor black = Tensor::empty(pixels.shape(1), DType::u8);
    std::memset(black.bytes(), 0, static_cast<std::size_t>(black.numel()));
    {
      const NoGrad no_grad;
      class_probabilities(info, forward(black.to(device)));
    }
    for (int i = 0; captured && i < 3; ++i) probabilities(black);
  }

  // f32 outputs of u8 pixels on the device.
  Tensor forward(const Tensor& input) {
    const MatmulPrecisionScope scope(precision);
    return cast(module.forward(network_input(input, info.input(), image_dtype(module, precision))),
                DType::f32);
  }

  Tensor probabilities(const Tensor& input) {
    const NoGrad no_grad;
    const std::lock_guard lock(network_mutex);
    return class_probabilities(
        info, captured && input.size(0) == 1 ? (*captured)(input) : forward(input.to(device)));
  }

  std::unique_ptr<Scratch> take_scratch() {
    const std::lock_guard lock(scratch_mutex);
    if (free_scratch.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> taken = std::move(free_scratch.back());
    free_scratch.pop_back();
    return taken;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(scratch_mutex);
    free_scratch.push_back(std::move(scratch));
  }

  Tensor make_pixels(std::span<const ImageView> images) {
    Tensor all = Tensor::empty(pixels.shape(std::ssize(images)), DType::u8);
    const std::int64_t image_bytes = all.numel() / std::ssize(images);
    std::unique_ptr<Scratch> scratch = take_scratch();
    scratch->threads.resize(
        std::max(scratch->threads.size(),
                 std::min(images.size(), static_cast<std::size_t>(std::max(thread_count(), 1)))));
    std::atomic<std::size_t> next_thread{0};
    parallel_tasks(std::ssize(images), 1, [&] {
      return [&, &mine = scratch->threads[next_thread++]](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          pixels.write(images[static_cast<std::size_t>(i)], all.data<std::uint8_t>() + i * image_bytes, mine);
      };
    });
    give_back(std::move(scratch));
    return all;
  }

  // One image that need not be resized is written directly to where the graph copies it from.
  bool is_direct(std::span<const ImageView> images) const {
    const Shape shape = pixels.shape(1);
    return captured && images.size() == 1 && images[0].height == shape[1] && images[0].width == shape[2];
  }

  Tensor direct_probabilities(const ImageView& image) {
    std::unique_ptr<Scratch> scratch = take_scratch();
    scratch->threads.resize(std::max<std::size_t>(scratch->threads.size(), 1));
    Tensor result;
    {
      const NoGrad no_grad;
      const std::lock_guard lock(network_mutex);
      pixels.write(image, captured->input(), scratch->threads[0]);
      result = class_probabilities(info, captured->run());
    }
    give_back(std::move(scratch));
    return result;
  }

  void classify(std::span<const ImageView> images, std::span<Prediction> answers) {
    const Tensor rows =
        is_direct(images) ? direct_probabilities(images[0]) : probabilities(make_pixels(images));
    const float* row = rows.data<float>();
    for (Prediction& answer : answers) {
      set_prediction(answer, {row, info.classes.size()}, info);
      row += info.classes.size();
    }
  }
};

Classifier::Classifier(const std::filesystem::path& file, const ClassifierOptions& options) {
  require_available(options.device);
  check(options.device.is_cuda() || options.precision != MatmulPrecision::tf32,
        "[classifier] expected precision fp32 or bf16 on the CPU, got {}", name_of(options.precision));
  Model model = load_model(file);
  model.module->to(options.device);
  Module& module = *model.module;
  state_ = std::make_unique<State>(std::move(model.info), std::move(model.module), module, options.precision);
}

Classifier::Classifier(const std::filesystem::path& file, Device device)
    : Classifier(file, ClassifierOptions{.device = device}) {}

Classifier::Classifier(const std::filesystem::path& file, Module& module) {
  ModelInfo info = load_model_into(module, file);
  state_ = std::make_unique<State>(std::move(info), nullptr, module, MatmulPrecision::fp32);
}

Classifier::~Classifier() = default;
Classifier::Classifier(Classifier&&) noexcept = default;
Classifier& Classifier::operator=(Classifier&&) noexcept = default;

Prediction Classifier::operator()(const std::uint8_t* rgb, std::int64_t width, std::int64_t height,
                                  std::int64_t stride) const {
  check(width > 0 && width <= max_pixels, "[classifier] expected a width from 1 to {}, got {}", max_pixels,
        width);
  return (*this)(ImageView(rgb, height, width, 3, stride == 0 ? 3 * width : stride));
}

Prediction Classifier::operator()(const ImageView& image) const {
  Prediction answer;
  classify({&image, 1}, {&answer, 1});
  return answer;
}

std::vector<Prediction> Classifier::operator()(std::span<const ImageView> images) const {
  std::vector<Prediction> answers(images.size());
  classify(images, answers);
  return answers;
}

void Classifier::classify(std::span<const ImageView> images, std::span<Prediction> answers) const {
  check(images.size() == answers.size(), "[classifier] expected {} answers, one per image, got {}",
        images.size(), answers.size());
  for (const ImageView& image : images) check_image(image);
  for (std::size_t begin = 0, count = 0; begin < images.size(); begin += count) {
    count = static_cast<std::size_t>(next_evaluation_batch(
        std::ssize(images) - static_cast<std::int64_t>(begin), info().input(), state_->device));
    state_->classify(images.subspan(begin, count), answers.subspan(begin, count));
  }
}

const ModelInfo& Classifier::info() const {
  return state_->info;
}

}  // namespace tandem
