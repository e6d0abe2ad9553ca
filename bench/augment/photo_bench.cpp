// Transforms decoded photographs of 500×500 to batches of 256 images of 224×224 on every available device, in
// images per second: the usual transforms for training and evaluation, color jitter and RandAugment.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/augment/photo.h"
#include "tandem/augment/transform.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

constexpr std::int64_t photos = 256, side = 500, photo_bytes = 3 * side * side;

void transform(benchmark::State& state, const std::string& text, Device device) {
  const PhotoRecipe recipe = Transform::parse(text).photo();
  std::vector<std::int64_t> fields;
  for (std::int64_t i = 0; i < photos; ++i) fields.insert(fields.end(), {i * photo_bytes, side, side});
  const Tensor pixels =
      random_integers({photos * photo_bytes}, 0, 256, {.seed = 1, .dtype = DType::u8, .device = device});
  const Tensor locations = Tensor::from(fields, {photos, 3}, device);
  const Tensor samples =
      random_integers({photos}, 0, photos, {.seed = 2, .dtype = DType::i32, .device = device});
  const Tensor out = Tensor::empty({photos, recipe.height, recipe.width, 3}, DType::u8, device);
  std::int64_t epoch = 0;
  time_operation(state, device, {.bytes = out.numel(), .items = photos}, [&] {
    transform_photo_batch(recipe, 1, epoch++, pixels, locations, samples, out);
    return out;
  });
}

[[maybe_unused]] const bool registered = [] {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const char* recipe : {"photo", "none", "center 256", "crop, flip, jitter 0.4 0.4 0.4 0.1",
                             "crop, flip, randaugment 2 9, erase 0.25"})
    for (const Device device : devices)
      benchmark::RegisterBenchmark(fmt::format("photo/{}/{}", recipe, device.to_string()).c_str(),
                                   [=](benchmark::State& state) { transform(state, recipe, device); })
          ->UseManualTime();
  return true;
}();

}  // namespace
}  // namespace tandem
