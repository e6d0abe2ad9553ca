#include "tandem/data/loader/photo_fetcher.h"

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/loader/ring.h"

namespace tandem {

PhotoFetcher::PhotoFetcher(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan,
                           const PhotoRecipe& recipe, std::int64_t max_bytes, BeforeSample before_sample)
    : photos_(std::move(photos)),
      plan_(plan),
      recipe_(recipe),
      max_bytes_(max_bytes),
      before_sample_(std::move(before_sample)) {}

void PhotoFetcher::fetch(BlockOrder& order, std::int64_t epoch, std::int64_t position, bool with_engine,
                         FetchedPhoto& out, PhotoScratch& scratch) {
  out.file.reset();
  out.has_image = false;
  out.label = -1;
  BadSample bad;
  std::int64_t at = order.global_position(position);
  for (std::int64_t tried = 0;; at = order.after(at)) {
    const detail::Draw draw = order.at(at);
    try {
      if (before_sample_) before_sample_(draw.sample);
      if (read(draw, epoch, with_engine, out, scratch, bad)) return;
      report_bad(bad);
      if (!plan_.replace_unreadable) return;
      check(++tried < plan_.samples,
            "expected photographs that can be read, got none in {} files, the last: {}", plan_.samples,
            bad.reason);
    } catch (...) {
      fail("[loader] {}: {}", photos_->table().path(draw.sample), exception_text());
    }
  }
}

bool PhotoFetcher::read(const detail::Draw& draw, std::int64_t epoch, bool with_engine, FetchedPhoto& out,
                        PhotoScratch& scratch, BadSample& bad) {
  const PhotoTable& table = photos_->table();
  const std::string path = table.path(draw.sample);
  try {
    auto file = std::make_unique<PhotoFile>(path, table.decode_options());
    out.key = draw.key;
    out.label = table.label(draw.sample);
    if (with_engine && file->is_common_jpeg() && 3 * file->height() * file->width() <= max_bytes_) {
      out.file = std::move(file);
      return true;
    }
    out.image.resize(static_cast<std::size_t>(std::int64_t{3} * recipe_.height * recipe_.width));
    read_photo(
        *file, recipe_,
        {.seed = plan_.transform_seed(), .epoch = static_cast<std::uint32_t>(epoch), .sample = draw.key},
        out.image.data(), scratch);
    out.has_image = true;
    return true;
  } catch (const Error& error) {
    out.label = -1;
    bad = bad_sample(error, path, draw.sample);
    return false;
  }
}

void PhotoFetcher::report_bad(const BadSample& bad) {
  check(photos_->on_bad_image() != OnBadImage::fail, "{}", bad.reason);
  const std::lock_guard lock(mutex_);
  const bool is_known =
      std::any_of(bad_.begin(), bad_.end(), [&](const BadSample& one) { return one.sample == bad.sample; });
  if (is_known) return;
  check(std::ssize(bad_) < max_bad,
        "expected photographs that can be read, but this is the {}th that cannot: {}", max_bad + 1,
        bad.reason);
  bad_.push_back(bad);
}

std::vector<BadSample> PhotoFetcher::bad() const {
  const std::lock_guard lock(mutex_);
  return bad_;
}

}  // namespace tandem
