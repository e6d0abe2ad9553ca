#include "tandem/data/photo_set.h"

#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/report/text.h"

namespace tandem {
namespace {

std::int64_t bytes_of(const PhotoRecipe& recipe) {
  return std::int64_t{3} * recipe.height * recipe.width;
}

Tensor room_for(std::size_t count, const PhotoRecipe& recipe) {
  return Tensor::empty({static_cast<std::int64_t>(count), recipe.height, recipe.width, 3}, DType::u8);
}

void check_room(std::size_t count, const PhotoRecipe& recipe) {
  const std::int64_t most = free_host_bytes() / 2 / bytes_of(recipe);
  check(static_cast<std::int64_t>(count) <= most,
        "[photos] expected at most {} photographs of {}x{} to judge by, as half of the free memory holds, "
        "got {}: use fewer, or a smaller image size",
        most, recipe.height, recipe.width, count);
}

// Calls make(i, out, scratch) for every image, in parallel.
template <class F>
void make_all(const Tensor& images, const PhotoRecipe& recipe, F&& make) {
  std::uint8_t* const out = images.data<std::uint8_t>();
  parallel_tasks(images.size(0), 1, [&] {
    return [&, scratch = PhotoScratch()](std::int64_t i, std::int64_t) mutable {
      make(static_cast<std::size_t>(i), out + i * bytes_of(recipe), scratch);
    };
  });
}

}  // namespace

MadePhotos make_photos(std::span<const std::filesystem::path> files, const PhotoRecipe& recipe,
                       const PhotoReading& reading) {
  check_photo_recipe(recipe);
  MadePhotos made{room_for(files.size(), recipe), std::vector<std::string>(files.size())};
  make_all(made.images, recipe, [&](std::size_t i, std::uint8_t* out, PhotoScratch& scratch) {
    const std::string path = files[i].string();
    try {
      make_photo_from_file(path, reading, recipe, {}, out, scratch);
    } catch (const Error& error) {
      made.reasons[i] = reason_without_path(error.what(), path);
      std::memset(out, 0, static_cast<std::size_t>(bytes_of(recipe)));
    }
  });
  return made;
}

PhotoSet make_photo_set(const std::vector<std::filesystem::path>& files,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe, const PhotoReading& reading, OnBadImage on_bad_image) {
  expect(!files.empty() && files.size() == labels.size());
  check_room(files.size(), recipe);
  const MadePhotos made = make_photos(files, recipe, reading);
  PhotoSet set;
  std::vector<std::int32_t> kept;
  std::uint8_t* const pixels = made.images.data<std::uint8_t>();
  const auto bytes = static_cast<std::size_t>(bytes_of(recipe));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!made.reasons[i].empty()) {
      check(on_bad_image == OnBadImage::skip, "[photos] {}: {}", one_line(files[i].string()),
            made.reasons[i]);
      set.bad.push_back({static_cast<std::int32_t>(i), files[i].string(), made.reasons[i]});
      continue;
    }
    if (kept.size() < i) std::memcpy(pixels + kept.size() * bytes, pixels + i * bytes, bytes);
    kept.push_back(labels[i]);
    set.names.push_back(files[i].string());
  }
  check(!kept.empty(),
        "[photos] expected photographs that can be read, got none in {} files, the first {}: {}",
        files.size(), one_line(files[0].string()), made.reasons[0]);
  const auto count = static_cast<std::int64_t>(kept.size());
  set.images = {
      .images = made.images.slice(0, 0, count), .labels = Tensor::from(kept, {count}), .classes = classes};
  return set;
}

PhotoSet make_photo_set(const std::function<Image(std::size_t)>& photo, const std::vector<std::string>& names,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe) {
  expect(!names.empty() && names.size() == labels.size());
  check_photo_recipe(recipe);
  check_room(names.size(), recipe);
  const Tensor images = room_for(names.size(), recipe);
  make_all(images, recipe, [&](std::size_t i, std::uint8_t* out, PhotoScratch& scratch) {
    const Image drawn = photo(i);
    make_photo(recipe, draw_photo(recipe, drawn.height, drawn.width, {}), drawn, out, scratch);
  });
  return {.images = {.images = images,
                     .labels = Tensor::from(labels, {static_cast<std::int64_t>(labels.size())}),
                     .classes = classes},
          .names = names,
          .bad = {}};
}

}  // namespace tandem
