#include "tandem/data/synthetic/scenes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/core/parallel.h"
#include "tandem/data/synthetic/scenes_kernel.h"
#include "tandem/device/on_backend.h"
#include "tandem/tensor/copy.h"

namespace tandem::detail {
namespace {

using namespace scenes;

void render_tile(const Scene& scene, const View& view, const Request& request, int tile,
                 std::uint8_t* pixels) {
  const int across = tiles_per_side(request.size), tile_x = tile % across, tile_y = tile / across;
  const TileCircle circle = circle_of(view, tile_x, tile_y, request.size);
  std::uint8_t parts[Scene::max_parts];
  int count = 0;
  for (int i = 0; i < scene.parts; ++i)
    if (reaches(scene.part[i], circle)) parts[count++] = static_cast<std::uint8_t>(i);
  for (int row = tile_y * tile_side; row < std::min((tile_y + 1) * tile_side, request.size); ++row)
    for (int column = tile_x * tile_side; column < std::min((tile_x + 1) * tile_side, request.size);
         ++column) {
      Color sum = sample_of(scene, view, column, row, 0, request.size, count, parts);
      for (int sample = 1; sample < samples_per_pixel; ++sample) {
        const Color color = sample_of(scene, view, column, row, sample, request.size, count, parts);
        sum = {sum.r + color.r, sum.g + color.g, sum.b + color.b};
      }
      const Color color = pixel_of(view, sum, column, row);
      std::uint8_t* const to = pixels + (row * request.size + column) * 3;
      to[0] = to_byte(color.r);
      to[1] = to_byte(color.g);
      to[2] = to_byte(color.b);
    }
}

}  // namespace

template <>
void render_scenes_kernel<Backend::cpu>(const Request& request, const std::int64_t* first,
                                        const ScenePictures& out, StreamView) {
  parallel_for(request.scenes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const SceneKey key = key_of(request, *first + i);
      sample_scene(out.scene[i], key, request.kinds);
      for (int v = 0; v < request.views; ++v) make_view(out.view[v * request.scenes + i], request, key, v);
      for (int k = 0; k < attribute_count && out.attributes; ++k)
        out.attributes[i * attribute_count + k] = out.scene[i].attribute[k];
    }
  });
  const int tiles = tiles_per_side(request.size) * tiles_per_side(request.size);
  const std::int64_t picture_bytes = std::int64_t{request.size} * request.size * 3;
  parallel_for(std::int64_t{request.scenes} * request.views * tiles, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t unit = begin; unit < end; ++unit) {
                   const std::int64_t picture = unit / tiles;
                   render_tile(out.scene[picture % request.scenes], out.view[picture], request,
                               static_cast<int>(unit % tiles), out.pixels + picture * picture_bytes);
                 }
               });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

scenes::Request request_of(const SceneOptions& options, std::int64_t scene_count) {
  scenes::Request request{.seed = options.seed,
                          .scenes = static_cast<int>(scene_count),
                          .views = std::max(options.views, 1),
                          .size = static_cast<int>(options.size),
                          .whole = options.views == 0};
  request.view = {.min_area = static_cast<float>(options.min_area),
                  .jitter = static_cast<float>(options.jitter)};
  if (!options.kinds.empty())
    for (std::size_t i = 0; i < options.kinds.size(); ++i)
      request.kinds.share[i] = static_cast<float>(options.kinds[i]);
  return request;
}

void check_options(std::int64_t scene_count, const SceneOptions& options) {
  constexpr std::int64_t max_scenes = 1 << 15, max_size = 4096;
  check(scene_count >= 1 && scene_count <= max_scenes, "[scenes] expected 1 to {} scenes, got {}", max_scenes,
        scene_count);
  check(options.size >= 8 && options.size <= max_size, "[scenes] expected a size of 8 to {}, got {}",
        max_size, options.size);
  check(options.views >= 0 && options.views <= 16, "[scenes] expected 0 to 16 views, got {}", options.views);
  check(options.min_area > 0 && options.min_area <= 1,
        "[scenes] expected an area above 0 and up to 1, got {}", options.min_area);
  check(options.jitter >= 0 && options.jitter <= 1, "[scenes] expected a jitter of 0 to 1, got {}",
        options.jitter);
  check(options.kinds.empty() || options.kinds.size() == scene_kinds().size(),
        "[scenes] expected {} shares of kinds, got {}", scene_kinds().size(), options.kinds.size());
  check(std::ranges::all_of(options.kinds, [](double share) { return share >= 0 && share <= 1e6; }) &&
            (options.kinds.empty() || std::accumulate(options.kinds.begin(), options.kinds.end(), 0.0) > 0),
        "[scenes] expected shares of kinds of 0 or more, not all 0");
}

Tensor make_memory(std::size_t bytes, Device device) {
  return Tensor::empty({static_cast<std::int64_t>(bytes)}, DType::u8, device);
}

}  // namespace

const std::vector<std::string>& scene_kinds() {
  static const std::vector<std::string> names{"pattern",    "leaves",    "objects",   "grid",  "strokes",
                                              "marks",      "branches",  "creatures", "blobs", "network",
                                              "structures", "landscape", "tiles",     "room",  "solids"};
  return names;
}

std::vector<double> scene_shares(const std::vector<std::string>& kinds) {
  const std::vector<std::string>& names = scene_kinds();
  const scenes::KindShares usual;
  std::vector<double> shares(names.size());
  for (const std::string& kind : kinds) {
    const auto found = std::ranges::find(names, kind);
    check(found != names.end(), "[scenes] expected kinds of {}, got '{}'{}", fmt::join(names, ", "), kind,
          did_you_mean(kind, names));
    const auto index = static_cast<std::size_t>(found - names.begin());
    shares[index] = usual.share[index];
  }
  return shares;
}

std::vector<std::int64_t> SceneRenderer::attribute_sizes() {
  return {std::begin(scenes::attribute_sizes), std::end(scenes::attribute_sizes)};
}

SceneRenderer::SceneRenderer(std::int64_t scene_count, const SceneOptions& options, Device device)
    : options_(options), scenes_(scene_count), device_(device) {
  check_options(scene_count, options);
  const std::int64_t count = scene_count * std::max(options.views, 1);
  images_ = Tensor::empty({count, options.size, options.size, 3}, DType::u8, device);
  attributes_ = Tensor::empty({scene_count, scenes::attribute_count}, DType::i32, device);
  first_ = Tensor::empty({1}, DType::i64, device);
  scene_memory_ = make_memory(static_cast<std::size_t>(scene_count) * sizeof(scenes::Scene), device);
  view_memory_ = make_memory(static_cast<std::size_t>(count) * sizeof(scenes::View), device);
}

void SceneRenderer::render(std::int64_t first) {
  check(first >= 0, "[scenes] expected a number of 0 or more, got {}", first);
  copy_into(first_, Tensor::from(std::vector<std::int64_t>{first}, {1}, device_));
  render(first_);
}

void SceneRenderer::render(const Tensor& first) {
  check(first.dtype() == DType::i64 && first.numel() == 1 && first.device() == device_,
        "[scenes] expected the number of the first scene as one i64 on {}, got {} of {} on {}",
        device_.to_string(), first.shape().to_string(), name_of(first.dtype()), first.device().to_string());
  const scenes::Request request = request_of(options_, scenes_);
  const detail::ScenePictures out{.scene = reinterpret_cast<scenes::Scene*>(scene_memory_.bytes()),
                                  .view = reinterpret_cast<scenes::View*>(view_memory_.bytes()),
                                  .pixels = images_.data<std::uint8_t>(),
                                  .attributes = attributes_.data<std::int32_t>()};
  on_backend(device_, "scenes", [&]<Backend B>() {
    detail::render_scenes_kernel<B>(request, first.data<std::int64_t>(), out, current_stream(device_));
  });
}

SceneDataset::SceneDataset(std::uint64_t seed, std::int64_t first, std::int64_t count, std::int64_t size)
    : seed_(seed), first_(first), count_(count), side_(size) {
  check(first >= 0 && count >= 1, "[scenes] expected scenes from 0 on, at least one, got {} from {} on",
        count, first);
}

Image SceneDataset::image(std::int64_t index) const {
  check(index >= 0 && index < count_, "[scenes] expected an index below {}, got {}", count_, index);
  SceneRenderer renderer(1, {.seed = seed_, .size = side_});
  renderer.render(first_ + index);
  const auto* const pixels = renderer.images().data<std::uint8_t>();
  return {side_, side_, 3, {pixels, pixels + side_ * side_ * 3}};
}

std::int32_t SceneDataset::label(std::int64_t index) const {
  auto scene = std::make_unique<scenes::Scene>();
  scenes::sample_scene(*scene, {seed_, static_cast<std::uint64_t>(first_ + index)}, {});
  return static_cast<std::int32_t>(scene->kind);
}

std::string SceneDataset::describe(std::int64_t index) const {
  return fmt::format("scene {}", first_ + index);
}

PhotoSplit scenes_split(std::uint64_t seed, std::int64_t train) {
  constexpr std::int64_t validation = 100, test = 300, apart = std::int64_t{1} << 40;
  return {.train = std::make_shared<const SceneDataset>(seed, 0, train),
          .validation = std::make_shared<const SceneDataset>(seed, apart, validation),
          .test = std::make_shared<const SceneDataset>(seed, 2 * apart, test)};
}

}  // namespace tandem
