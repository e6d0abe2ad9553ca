#include "tandem/study/check/copies.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/image/resize_area.h"
#include "tandem/image/same_picture.h"
#include "tandem/study/check/hash_index.h"

namespace tandem {
namespace {

constexpr std::uint64_t max_file_bytes = max_image_file_bytes;

// Each file is compared with at most so many pictures of the same hash, and of so many near hashes.
constexpr int max_pictures_per_hash = 8;
constexpr std::size_t max_near_hashes = 64;

std::size_t as_size(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Sets of files; a set is known by its smallest.
class UnionFind {
 public:
  explicit UnionFind(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }

  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

using Pair = std::pair<std::uint32_t, std::uint32_t>;  // files

class CopyFinder {
 public:
  CopyFinder(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t max_pixels,
             const CheckProgress& on_progress)
      : files_(files),
        images_(images),
        max_pixels_(max_pixels),
        on_progress_(on_progress),
        originals_(images.size()),
        sets_(images.size()) {
    std::iota(originals_.begin(), originals_.end(), 0U);
  }

  Copies find() {
    find_identical();
    group_by_hash();
    compare_equal_hashes();
    compare_near_hashes();
    return result();
  }

 private:
  std::string bytes_of(std::uint32_t file) const {
    return read_file("check", files_.path_of(files_.files[file]), max_file_bytes);
  }

  // Files of the same size and content hash are compared byte by byte.
  void find_identical() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < images_.size(); ++i)
      if (images_[i].was_read()) order.push_back(i);
    const auto key = [&](std::uint32_t i) { return std::tuple(images_[i].bytes, images_[i].content); };
    std::ranges::stable_sort(order, {}, key);
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && key(order[end]) == key(order[begin])) ++end;
      if (end - begin > 1) runs.emplace_back(begin, end);
    }
    parallel_tasks(std::ssize(runs), 1, [&] {
      return [&](std::int64_t run, std::int64_t) {
        const auto [begin, end] = runs[as_size(run)];
        compare_bytes(std::span(order).subspan(begin, end - begin));
      };
    });
    for (std::uint32_t i = 0; i < originals_.size(); ++i) sets_.join(originals_[i], i);
  }

  void compare_bytes(std::span<const std::uint32_t> run) {
    std::vector<std::pair<std::uint32_t, std::string>> different;
    for (const std::uint32_t file : run) try {
        std::string bytes = bytes_of(file);
        const auto same = std::ranges::find(different, bytes, &std::pair<std::uint32_t, std::string>::second);
        if (same == different.end())
          different.emplace_back(file, std::move(bytes));
        else
          originals_[file] = same->first;
      } catch (const Error&) {  // it has gone: it is no copy
      }
  }

  bool is_original(std::uint32_t i) const { return images_[i].was_read() && originals_[i] == i; }

  // Originals with the same hash of the whole picture.
  void group_by_hash() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < images_.size(); ++i)
      if (is_original(i)) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) -> const PictureHash& { return hash_of(i); });
    group_of_.resize(images_.size());
    for (const std::uint32_t i : order) {
      if (hashes_.empty() || hashes_.back() != hash_of(i)) {
        hashes_.push_back(hash_of(i));
        groups_.emplace_back();
      }
      groups_.back().push_back(i);
      group_of_[i] = static_cast<std::uint32_t>(groups_.size() - 1);
    }
  }

  const PictureHash& hash_of(std::uint32_t i) const { return images_[i].hashes[0]; }

  // Leaves in each group one file of each picture. The first file is compared with all others, then the
  // first that differs, and so on.
  void compare_equal_hashes() {
    std::vector<std::vector<std::uint32_t>> open;
    std::vector<std::size_t> open_groups;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].size() > 1) {
        open_groups.push_back(i);
        open.push_back(std::exchange(groups_[i], {}));
      }
    for (int round = 0; round < max_pictures_per_hash; ++round) {
      std::vector<Pair> pairs;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i].empty()) continue;
        groups_[open_groups[i]].push_back(open[i][0]);
        for (std::size_t k = 1; k < open[i].size(); ++k) pairs.emplace_back(open[i][0], open[i][k]);
        open[i].erase(open[i].begin());
      }
      if (pairs.empty()) break;
      compare(pairs);
      for (std::size_t i = 0; i < open.size(); ++i)
        if (!open[i].empty())
          std::erase_if(open[i], [&, first = groups_[open_groups[i]].back()](std::uint32_t file) {
            return sets_.find(file) == sets_.find(first);
          });
    }
    for (const auto& rest : open) partly_compared_ += std::ssize(rest);
  }

  void compare_near_hashes() {
    const HashIndex index(hashes_);
    std::vector<std::uint32_t> queries;
    for (std::uint32_t i = 0; i < images_.size(); ++i)
      if (is_original(i)) queries.push_back(i);
    std::vector<Pair> pairs;
    std::int64_t limited = 0;
    std::mutex mutex;
    parallel_tasks(std::ssize(queries), 64, [&] {
      return [&, near = std::vector<std::uint32_t>{}](std::int64_t begin, std::int64_t end) mutable {
        std::vector<Pair> found;
        std::int64_t cut = 0;
        for (std::int64_t at = begin; at < end; ++at) {
          const std::uint32_t file = queries[as_size(at)];
          near.clear();
          bool complete = true;
          for (const PictureHash& hash : images_[file].hashes)
            complete = index.find(hash, max_near_hashes, near) && complete;
          cut += complete ? 0 : 1;
          std::ranges::sort(near);
          near.erase(std::unique(near.begin(), near.end()), near.end());
          for (const std::uint32_t group : near)
            if (group != group_of_[file])
              for (const std::uint32_t other : groups_[group]) found.emplace_back(std::minmax(file, other));
        }
        const std::lock_guard lock(mutex);
        pairs.insert(pairs.end(), found.begin(), found.end());
        limited += cut;
      };
    });
    partly_compared_ += limited;
    std::ranges::sort(pairs);
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    compare(pairs);
  }

  Image picture_of(std::uint32_t file) const try {
    const std::string bytes = bytes_of(file);
    const std::span data(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const ImageFacts& facts = images_[file];
    const LoadOptions options{.max_pixels = max_pixels_, .rgb = true};
    return resize_area(decode_scaled(data, files_.files[file].path, {0, 0, facts.width, facts.height},
                                     compared_side, compared_side, options),
                       compared_side, compared_side);
  } catch (const Error&) {  // it has changed since it was read
    return {};
  }

  // Joins the files of each pair that show the same picture. Pairs that are joined already are left out.
  void compare(std::span<const Pair> all) {
    constexpr std::size_t block = 4096;  // so many pairs have at most 100 MB of pixels
    std::vector<Pair> pairs;
    for (std::size_t begin = 0; begin < all.size(); begin += block) {
      pairs.clear();
      for (const auto& [a, b] : all.subspan(begin, std::min(block, all.size() - begin)))
        if (sets_.find(a) != sets_.find(b)) pairs.emplace_back(a, b);
      compare_block(pairs);
      if (on_progress_)
        on_progress_(static_cast<std::int64_t>(std::min(begin + block, all.size())), std::ssize(all));
    }
  }

  void compare_block(std::span<const Pair> pairs) {
    std::vector<std::uint32_t> needed;
    for (const auto& [a, b] : pairs) needed.push_back(a), needed.push_back(b);
    std::ranges::sort(needed);
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    std::vector<Image> pictures(needed.size());
    parallel_tasks(std::ssize(needed), 1, [&] {
      return [&](std::int64_t i, std::int64_t) { pictures[as_size(i)] = picture_of(needed[as_size(i)]); };
    });
    const auto picture = [&](std::uint32_t file) -> const Image& {
      return pictures[as_size(std::ranges::lower_bound(needed, file) - needed.begin())];
    };
    std::vector<std::uint8_t> same(pairs.size());
    parallel_tasks(std::ssize(pairs), 8, [&] {
      return [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Image &a = picture(pairs[as_size(i)].first), &b = picture(pairs[as_size(i)].second);
          same[as_size(i)] = a.height > 0 && b.height > 0 && is_same_picture(a, b) ? 1 : 0;
        }
      };
    });
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (same[i] != 0) sets_.join(pairs[i].first, pairs[i].second);
  }

  Copies result() {
    std::vector<std::uint32_t> sizes(images_.size());
    for (std::uint32_t i = 0; i < images_.size(); ++i) ++sizes[sets_.find(i)];
    Copies copies{.groups = {}, .partly_compared = partly_compared_};
    std::unordered_map<std::uint32_t, std::size_t> groups;
    for (std::uint32_t i = 0; i < images_.size(); ++i) {
      const std::uint32_t set = sets_.find(i);
      if (sizes[set] < 2) continue;
      const auto [found, is_new] = groups.try_emplace(set, copies.groups.size());
      if (is_new) copies.groups.emplace_back();
      CopyGroup& group = copies.groups[found->second];
      group.files.push_back(i);
      group.originals.push_back(originals_[i]);
    }
    return copies;
  }

  const CheckedFiles& files_;
  std::span<const ImageFacts> images_;
  std::int64_t max_pixels_;
  const CheckProgress& on_progress_;
  std::vector<std::uint32_t> originals_;  // of each file: the first one with the same bytes
  UnionFind sets_;
  std::vector<PictureHash> hashes_;                 // different ones, sorted
  std::vector<std::vector<std::uint32_t>> groups_;  // of each: the files with different pictures
  std::vector<std::uint32_t> group_of_;
  std::int64_t partly_compared_ = 0;
};

}  // namespace

Copies find_copies(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t max_pixels,
                   const CheckProgress& on_progress) {
  return CopyFinder(files, images, max_pixels, on_progress).find();
}

}  // namespace tandem
