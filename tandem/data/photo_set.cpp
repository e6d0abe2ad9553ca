#include "tandem/data/photo_set.h"

#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::int64_t bytes_of(const PhotoRecipe& recipe) {
  return std::int64_t{3} * recipe.height * recipe.width;
}

Tensor empty_images(std::size_t count, const PhotoRecipe& recipe) {
  return Tensor::empty({static_cast<std::int64_t>(count), recipe.height, recipe.width, 3}, DType::u8);
}

void check_memory(std::size_t count, const PhotoRecipe& recipe) {
  const std::int64_t max_count = free_host_bytes() / 2 / bytes_of(recipe);
  check(static_cast<std::int64_t>(count) <= max_count,
        "[photos] expected at most {} photographs of {}x{} for validation, as many as fit into half of the "
        "free "
        "memory, got {}: use fewer, or a smaller image size",
        max_count, recipe.height, recipe.width, count);
}

// Calls read(i, out, scratch) for every image, in parallel.
template <class F>
void read_all(const Tensor& images, const PhotoRecipe& recipe, F&& read) {
  std::uint8_t* const out = images.data<std::uint8_t>();
  parallel_tasks(images.size(0), 1, [&] {
    return [&, scratch = PhotoScratch()](std::int64_t i, std::int64_t) mutable {
      read(static_cast<std::size_t>(i), out + i * bytes_of(recipe), scratch);
    };
  });
}

}  // namespace

DecodedImages load_photos(std::span<const std::filesystem::path> files, const PhotoRecipe& recipe,
                          const PhotoDecodeOptions& decode) {
  check_photo_recipe(recipe);
  DecodedImages decoded{empty_images(files.size(), recipe), std::vector<BadSample>(files.size())};
  read_all(decoded.images, recipe, [&](std::size_t i, std::uint8_t* out, PhotoScratch& scratch) {
    const std::string path = files[i].string();
    try {
      read_photo(path, decode, recipe, {}, out, scratch);
    } catch (const Error& error) {
      decoded.bad[i] = bad_sample(error, path, static_cast<std::int32_t>(i));
      std::memset(out, 0, static_cast<std::size_t>(bytes_of(recipe)));
    }
  });
  return decoded;
}

PhotoSet load_photo_set(const std::vector<std::filesystem::path>& files,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe, const PhotoDecodeOptions& decode,
                        OnBadImage on_bad_image) {
  expect(!files.empty() && files.size() == labels.size());
  check_memory(files.size(), recipe);
  const DecodedImages decoded = load_photos(files, recipe, decode);
  PhotoSet set;
  std::vector<std::int32_t> kept;
  std::uint8_t* const pixels = decoded.images.data<std::uint8_t>();
  const auto bytes = static_cast<std::size_t>(bytes_of(recipe));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (const BadSample& bad = decoded.bad[i]; !bad.reason.empty()) {
      check(on_bad_image == OnBadImage::skip, "[photos] {}: {}", one_line(files[i].string()), bad.reason);
      set.bad.push_back({bad.sample, files[i].string(), bad.reason, bad.kind});
      continue;
    }
    if (kept.size() < i) std::memcpy(pixels + kept.size() * bytes, pixels + i * bytes, bytes);
    kept.push_back(labels[i]);
    set.names.push_back(files[i].string());
  }
  check(!kept.empty(),
        "[photos] expected photographs that can be read, got none in {} files, the first {}: {}",
        files.size(), one_line(files[0].string()), decoded.bad[0].reason);
  const auto count = static_cast<std::int64_t>(kept.size());
  set.images = {
      .images = decoded.images.slice(0, 0, count), .labels = Tensor::from(kept, {count}), .classes = classes};
  return set;
}

}  // namespace tandem
