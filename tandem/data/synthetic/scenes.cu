// One warp samples a scene, with one thread: threads of a warp would take the paths of all kinds one after
// the other. One block renders a tile of a picture: it copies the scene to shared memory and lists the parts
// that reach the tile. The samples of a pixel have a thread each, so that a warp sees few pixels, which
// mostly take the same path. What limits the speed is how many different instructions run on a multiprocessor
// at a time: blocks are large, and functions are called rather than inlined (scene_math.h).
#include "tandem/data/synthetic/scenes_kernel.h"
#include "tandem/device/cuda.h"

namespace tandem::detail {
namespace {

using namespace scenes;

constexpr int threads = 512, blocks_per_multiprocessor = 2, warp_size = 32;

// The pixels whose samples a warp computes at a time.
constexpr int patch_width = 4, patch_height = 2;
static_assert(patch_width * patch_height * samples_per_pixel == warp_size);
static_assert(tile_side % patch_width == 0 && tile_side % patch_height == 0);

__global__ void __launch_bounds__(warp_size)
    sample(Request request, const std::int64_t* __restrict__ first, ScenePictures out) {
  if (threadIdx.x != 0) return;
  const int i = static_cast<int>(blockIdx.x);
  const SceneKey key = key_of(request, *first + i);
  Scene& scene = out.scene[i];
  sample_scene(scene, key, request.kinds);
  for (int v = 0; v < request.views; ++v) make_view(out.view[v * request.scenes + i], request, key, v);
  for (int k = 0; k < attribute_count && out.attributes; ++k)
    out.attributes[i * attribute_count + k] = scene.attribute[k];
}

template <class T>
__device__ void copy_words(T& to, const T& from, int bytes) {
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 4; i += threads)
    reinterpret_cast<std::uint32_t*>(&to)[i] = reinterpret_cast<const std::uint32_t*>(&from)[i];
}

// Lists the parts that reach the tile, in order. Returns their number.
__device__ int list_parts(const Scene& scene, const TileCircle& circle, std::uint8_t* parts,
                          int* warp_counts) {
  static_assert(Scene::max_parts <= threads);
  const int i = static_cast<int>(threadIdx.x), warp = i / warp_size, lane = i % warp_size;
  const bool is_near = i < scene.parts && reaches(scene.part[i], circle);
  const unsigned near = __ballot_sync(0xffffffffu, is_near);
  if (lane == 0) warp_counts[warp] = __popc(near);
  __syncthreads();
  int before = 0, count = 0;
  for (int w = 0; w < threads / warp_size; ++w) {
    if (w < warp) before += warp_counts[w];
    count += warp_counts[w];
  }
  if (is_near) parts[before + __popc(near & ((1u << lane) - 1))] = static_cast<std::uint8_t>(i);
  __syncthreads();
  return count;
}

// The sums of the samples of all pixels of a tile. Parts of it beyond the picture are computed too.
__device__ void sum_samples(const Scene& scene, const View& view, int tile_x, int tile_y, int size, int count,
                            const std::uint8_t* parts, Color* sums) {
  constexpr int across = tile_side / patch_width, patches = across * (tile_side / patch_height);
  const int lane = static_cast<int>(threadIdx.x) % warp_size,
            warp = static_cast<int>(threadIdx.x) / warp_size;
  const int pixel = lane / samples_per_pixel, sample = lane % samples_per_pixel;
  for (int patch = warp; patch < patches; patch += threads / warp_size) {
    const int column = patch % across * patch_width + pixel % patch_width,
              row = patch / across * patch_height + pixel / patch_width;
    const Color color = sample_of(scene, view, tile_x * tile_side + column, tile_y * tile_side + row, sample,
                                  size, count, parts);
    Color sum = color;  // in the order of the samples, in the lane of the first
    for (int other = 1; other < samples_per_pixel; ++other)
      sum = {sum.r + __shfl_down_sync(0xffffffffu, color.r, other),
             sum.g + __shfl_down_sync(0xffffffffu, color.g, other),
             sum.b + __shfl_down_sync(0xffffffffu, color.b, other)};
    if (sample == 0) sums[row * tile_side + column] = sum;
  }
}

__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    render(Request request, const Scene* __restrict__ sampled, const View* __restrict__ views,
           std::uint8_t* __restrict__ pixels) {
  __shared__ alignas(16) unsigned char memory[sizeof(Scene)];
  __shared__ View view;
  __shared__ std::uint8_t parts[Scene::max_parts];
  __shared__ alignas(16) int warp_counts[threads / warp_size];
  __shared__ float sum_memory[tile_side * tile_side * 3];
  Scene& scene = *reinterpret_cast<Scene*>(memory);
  Color* const sums = reinterpret_cast<Color*>(sum_memory);
  const int number = static_cast<int>(blockIdx.y), tile = static_cast<int>(blockIdx.x);
  const int picture = static_cast<int>(blockIdx.z) * request.scenes + number;
  const Scene& source = sampled[number];
  constexpr int fixed_bytes = static_cast<int>(sizeof(Scene) - Scene::max_parts * sizeof(Part));
  copy_words(scene, source, fixed_bytes + source.parts * static_cast<int>(sizeof(Part)));
  copy_words(view, views[picture], static_cast<int>(sizeof(View)));
  __syncthreads();
  const int size = request.size, across = tiles_per_side(size);
  const int tile_x = tile % across, tile_y = tile / across;
  const int count = list_parts(scene, circle_of(view, tile_x, tile_y, size), parts, warp_counts);
  sum_samples(scene, view, tile_x, tile_y, size, count, parts, sums);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tile_side * tile_side; i += threads) {
    const int column = tile_x * tile_side + i % tile_side, row = tile_y * tile_side + i / tile_side;
    if (column >= size || row >= size) continue;
    const Color color = pixel_of(view, sums[i], column, row);
    std::uint8_t* const to = pixels + ((std::int64_t{picture} * size + row) * size + column) * 3;
    to[0] = to_byte(color.r);
    to[1] = to_byte(color.g);
    to[2] = to_byte(color.b);
  }
}

}  // namespace

template <>
void render_scenes_kernel<Backend::cuda>(const Request& request, const std::int64_t* first,
                                         const ScenePictures& out, StreamView stream) {
  sample<<<static_cast<unsigned>(request.scenes), warp_size, 0, cuda_stream(stream)>>>(request, first, out);
  check_launch("scenes");
  const auto tiles = static_cast<unsigned>(tiles_per_side(request.size) * tiles_per_side(request.size));
  const dim3 grid(tiles, static_cast<unsigned>(request.scenes), static_cast<unsigned>(request.views));
  render<<<grid, threads, 0, cuda_stream(stream)>>>(request, out.scene, out.view, out.pixels);
  check_launch("scenes");
}

}  // namespace tandem::detail
