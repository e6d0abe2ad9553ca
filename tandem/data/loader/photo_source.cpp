#include "tandem/data/loader/photo_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tandem/augment/photo_kernel.h"
#include "tandem/core/check.h"
#include "tandem/data/loader/block_order.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// A few batches: enough to hide the launch overhead, few enough that the first block is ready soon.
std::int64_t positions_of(const BatchPlan& plan, std::int64_t image_size, Device device) {
  const std::int64_t wanted_bytes = device.is_cuda() ? std::int64_t{256} << 20 : std::int64_t{16} << 20;
  return block_positions(plan, std::max<std::int64_t>(1, wanted_bytes / image_size));
}

Tensor iota_indices(std::int64_t count, Device device) {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return Tensor::from(indices, {count}, device);
}

// Copies directly from the store's memory, without a second copy on the host.
Tensor copied(const void* from, std::int64_t bytes, const Shape& shape, DType dtype, Device device) {
  const Tensor to = Tensor::empty(shape, dtype, device);
  on_backend(device, "photos", [&]<Backend B>() {
    copy_bytes<B>(to.bytes(), from, static_cast<std::size_t>(bytes), current_stream(device));
  });
  return to;
}

}  // namespace

DevicePhotos::DevicePhotos(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan,
                           const PhotoRecipe& recipe, Device device, Timeline* timeline)
    : BatchSource(plan), photos_(std::move(photos)), recipe_(recipe), timeline_(timeline) {
  const PhotoTable& table = photos_->table();
  check_photo_recipe(recipe);
  expect(table.decoded());
  check(plan.samples <= table.count(), "[photos] expected {} photographs, got {}", plan.samples,
        table.count());
  const std::int64_t positions = positions_of(plan, image_size(), device);
  samples_ = Tensor::empty({positions}, DType::i32, device);
  labels_ = Tensor::empty({positions}, DType::i32, device);
  if (plan.balanced.classes > 0) keys_ = Tensor::empty({positions}, DType::i32, device);
  transformed_ = Tensor::empty({positions, recipe.height, recipe.width, 3}, DType::u8, device);
  indices_ = iota_indices(positions, device);
  if (!device.is_cuda()) return;
  const std::int64_t count = table.count(), bytes = table.pixel_bytes();
  pixels_ = copied(table.pixels(), bytes, {bytes}, DType::u8, device);
  locations_ = copied(table.locations(), count * static_cast<std::int64_t>(sizeof(PhotoLocation)), {count, 3},
                      DType::i64, device);
  all_labels_ = copied(table.labels(), 4 * count, {count}, DType::i32, device);
}

std::string DevicePhotos::description() const {
  return device().is_cuda() ? "on " + device().to_string() : "on the CPU, between the steps";
}

std::vector<SkippedSample> DevicePhotos::skipped() const {
  std::vector<SkippedSample> all;
  for (const BadSample& bad : photos_->bad())
    if (bad.sample < plan_.samples)
      all.push_back({bad.sample, photos_->table().path(bad.sample), bad.reason, bad.kind});
  return all;
}

// Only the host knows which photographs are bad, and which classes they have.
void DevicePhotos::fill_order_on_host(std::int64_t epoch, std::int64_t first, std::int64_t count) {
  const PhotoTable& table = photos_->table();
  const auto bad = [&](std::int32_t sample) { return table.location(sample).height == 0; };
  std::vector<std::int32_t> samples(static_cast<std::size_t>(count)), labels(samples.size()),
      keys(samples.size());
  BlockOrder order(plan_, epoch);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t position = order.global_position(first + static_cast<std::int64_t>(i));
    const detail::Draw draw =
        plan_.replace_unreadable ? order.first_usable(position, bad) : order.at(position);
    samples[i] = draw.sample;
    keys[i] = static_cast<std::int32_t>(draw.key);
    check(samples[i] >= 0, "[photos] expected photographs that can be read, got none among the first {}",
          plan_.samples);
    labels[i] = bad(samples[i]) ? -1 : table.label(samples[i]);
  }
  on_backend(device(), "photos", [&]<Backend B>() {
    const StreamView stream = current_stream(device());
    const std::size_t bytes = 4 * samples.size();
    copy_bytes<B>(samples_.bytes(), samples.data(), bytes, stream);
    copy_bytes<B>(labels_.bytes(), labels.data(), bytes, stream);
    if (keys_.defined()) copy_bytes<B>(keys_.bytes(), keys.data(), bytes, stream);
  });
}

SourceBlock DevicePhotos::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  const std::int64_t count = std::min({samples_.numel(), max_count, plan_.local_positions() - first});
  expect(first % plan_.local_batch_size() == 0 && count > 0);
  const bool on_gpu = device().is_cuda();
  const TimelineSpan span(on_gpu ? nullptr : timeline_, "augment", {"positions", epoch, first, count});
  if (on_gpu && photos_->bad().empty() && !keys_.defined())
    fill_block(plan_, epoch, first, all_labels_, samples_.slice(0, 0, count), labels_.slice(0, 0, count));
  else
    fill_order_on_host(epoch, first, count);
  const PhotoTable& table = photos_->table();
  const detail::PhotoBatch batch{
      .recipe = recipe_,
      .seed = plan_.transform_seed(),
      .epoch = static_cast<std::uint32_t>(epoch),
      .pixels = on_gpu ? pixels_.data<std::uint8_t>() : table.pixels(),
      .locations = on_gpu ? reinterpret_cast<const PhotoLocation*>(locations_.bytes()) : table.locations(),
      .photo_count = table.count(),
      .samples = samples_.data<std::int32_t>(),
      .keys = keys_.defined() ? keys_.data<std::int32_t>() : nullptr,
      .out = transformed_.data<std::uint8_t>(),
      .count = count};
  on_backend(device(), "photos",
             [&]<Backend B>() { detail::photo_kernel<B>(batch, current_stream(device())); });
  return {.count = count,
          .images = transformed_.data<std::uint8_t>(),
          .image_count = count,
          .samples = indices_.data<std::int32_t>(),
          .labels = labels_.data<std::int32_t>()};
}

}  // namespace tandem
