#include "tandem/augment/augment.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tandem/augment/augment_kernel.h"
#include "tandem/augment/fused_pass_simd.h"
#include "tandem/augment/own_operation_table.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

constexpr int max_side = 1 << 16;

bool is_image_batch(const Tensor& tensor) {
  return tensor.dtype() == DType::u8 && tensor.rank() == 4 && tensor.is_contiguous();
}

void check_images(const char* what, const Tensor& tensor) {
  check(is_image_batch(tensor),
        "[augment] expected contiguous {} of u8 in shape (count, height, width, channels), got {} of {}",
        what, tensor.shape().to_string(), name_of(tensor.dtype()));
}

bool overlap(const Tensor& a, const Tensor& b) {
  return a.numel() > 0 && b.numel() > 0 && a.bytes() < b.bytes() + b.numel() &&
         b.bytes() < a.bytes() + a.numel();
}

}  // namespace

void prefetch_image(const std::uint8_t* image, const ImageSize& size) {
  constexpr std::int64_t cache_line = 64, max_bytes = 4096;
  for (std::int64_t at = 0; at < std::min(size.bytes(), max_bytes); at += cache_line)
    __builtin_prefetch(image + at);
}

void augment_image(const Recipe& recipe, const ImageSize& size, const RandomKey& key, const std::uint8_t* in,
                   std::uint8_t* out, AugmentScratch& scratch) {
  scratch.steps.resize(static_cast<std::size_t>(recipe.count));
  detail::SampledStep* const steps = scratch.steps.data();
  // with_simd() enables fma instructions where the CPU has them; otherwise fma is a slow library call.
  with_simd([&]<std::size_t>() __attribute__((always_inline)) {
    RandomKey step_key = key;
    for (int i = 0; i < recipe.count; ++i) {
      step_key.operation = static_cast<std::uint32_t>(i);
      steps[i] = detail::sample_step(recipe.steps[i], size, step_key);
    }
  });
  augment_image(recipe, scratch.steps, size, key, in, out, scratch);
}

void augment_image(const Recipe& recipe, std::span<const detail::SampledStep> steps, const ImageSize& size,
                   const RandomKey& key, const std::uint8_t* in, std::uint8_t* out, AugmentScratch& scratch) {
  expect(static_cast<std::size_t>(recipe.count) == steps.size());
  const auto bytes = static_cast<std::size_t>(size.bytes());
  if (bytes == 0) return;
  if (recipe.empty()) {
    std::memcpy(out, in, bytes);
    return;
  }
  int passes = 0;
  for (int begin = 0; begin < recipe.count; begin = detail::fused_pass_at(recipe, begin).end) ++passes;
  if (passes > 1) scratch.image.resize(bytes);
  // Passes alternate between `out` and the scratch image, so that the last one writes to `out`.
  for (int begin = 0; passes > 0; --passes) {
    const detail::FusedPass pass = detail::fused_pass_at(recipe, begin);
    std::uint8_t* const to = passes % 2 == 1 ? out : scratch.image.data();
    if (recipe.steps[begin].kind == AugmentKind::custom) {
      RandomKey own_key = key;
      own_key.operation = static_cast<std::uint32_t>(begin);
      detail::run_own_operation(steps[static_cast<std::size_t>(begin)], size, own_key, in, to);
    } else {
      detail::run_fused_pass_simd({.recipe = &recipe,
                                   .pass = pass,
                                   .steps = steps.data(),
                                   .size = size,
                                   .key = key,
                                   .in = in,
                                   .out = to},
                                  scratch);
    }
    in = to;
    begin = pass.end;
  }
}

template <>
void detail::augment_kernel<Backend::cpu>(const AugmentBatch& batch, StreamView) {
  const std::int64_t bytes = batch.size.bytes();
  const std::int64_t grain = std::max<std::int64_t>((1 << 13) / std::max<std::int64_t>(bytes, 1), 1);
  parallel_tasks(batch.count, grain, [&] {
    return [&, scratch = AugmentScratch()](std::int64_t begin, std::int64_t end) mutable {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int32_t sample = batch.samples[i];
        if (i + 1 < batch.count) prefetch_image(batch.images + batch.samples[i + 1] * bytes, batch.size);
        const RandomKey key{.seed = batch.seed,
                            .epoch = batch.epoch,
                            .sample = static_cast<std::uint32_t>(batch.keys ? batch.keys[i] : sample)};
        augment_image(batch.recipe, batch.size, key, batch.images + sample * bytes, batch.out + i * bytes,
                      scratch);
      }
    };
  });
}

void augment_batch(const Recipe& recipe, std::uint64_t seed, std::int64_t epoch, const Tensor& images,
                   const Tensor& samples, Tensor out, const Tensor& keys) {
  const Device device = common_device("augment", {&images, &samples, &out});
  check(!keys.defined() || (keys.dtype() == DType::i32 && keys.shape() == samples.shape() &&
                            keys.is_contiguous() && keys.device() == device),
        "[augment] expected keys like the samples, {} of i32, got {} of {}", samples.shape().to_string(),
        keys.shape().to_string(), keys.defined() ? name_of(keys.dtype()) : "");
  check(epoch >= 0 && epoch <= std::numeric_limits<std::uint32_t>::max(),
        "[augment] expected an epoch from 0 to 4294967295, got {}", epoch);
  check_images("images", images);
  check_images("output", out);
  check(samples.dtype() == DType::i32 && samples.rank() == 1 && samples.is_contiguous(),
        "[augment] expected samples of i32 in shape (count), got {} of {}", samples.shape().to_string(),
        name_of(samples.dtype()));
  check(out.size(0) == samples.size(0) && out.size(1) == images.size(1) && out.size(2) == images.size(2) &&
            out.size(3) == images.size(3),
        "[augment] expected an output of shape [{}, {}, {}, {}], got {}", samples.size(0), images.size(1),
        images.size(2), images.size(3), out.shape().to_string());
  check(images.size(1) <= max_side && images.size(2) <= max_side && images.size(3) <= max_side,
        "[augment] expected height, width and channels of at most {}, got {}", max_side,
        images.shape().to_string());
  check(images.size(0) <= std::numeric_limits<std::int32_t>::max(),
        "[augment] expected at most 2147483647 images, got {}", images.size(0));
  check(!overlap(images, out), "[augment] expected an output that does not overlap the images");
  check(!device.is_cuda() || !recipe.cpu_only(),
        "[augment] expected operations that run on {}, got '{}': custom ones run on the CPU",
        device.to_string(), to_string(recipe));
  if (!device.is_cuda()) {  // the CUDA kernel checks for itself
    const std::int32_t* const sample = samples.data<std::int32_t>();
    for (std::int64_t i = 0; i < samples.numel(); ++i)
      check(sample[i] >= 0 && sample[i] < images.size(0),
            "[augment] expected samples from 0 to below {}, got {} at position {}", images.size(0), sample[i],
            i);
  }
  if (out.numel() == 0) return;
  const detail::AugmentBatch batch{.recipe = recipe,
                                   .size = {.height = static_cast<int>(images.size(1)),
                                            .width = static_cast<int>(images.size(2)),
                                            .channels = static_cast<int>(images.size(3))},
                                   .seed = seed,
                                   .epoch = static_cast<std::uint32_t>(epoch),
                                   .images = images.data<std::uint8_t>(),
                                   .image_count = static_cast<std::int32_t>(images.size(0)),
                                   .samples = samples.data<std::int32_t>(),
                                   .keys = keys.defined() ? keys.data<std::int32_t>() : nullptr,
                                   .out = out.data<std::uint8_t>(),
                                   .count = samples.numel()};
  on_backend(device, "augment",
             [&]<Backend B>() { detail::augment_kernel<B>(batch, current_stream(device)); });
}

}  // namespace tandem
