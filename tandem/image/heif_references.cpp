#include "tandem/image/heif_references.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tandem {
namespace {

using Bytes = std::span<const uint8_t>;

// At most eight bytes, the most significant first.
uint64_t big_endian(Bytes bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

// Calls f(type, contents) for each box. The last may be cut off.
template <class F>
void for_each_box(Bytes boxes, const F& f) {
  while (boxes.size() >= 8) {
    size_t header = 8;
    uint64_t size = big_endian(boxes.first(4));
    const std::string_view type(reinterpret_cast<const char*>(boxes.data()) + 4, 4);
    if (size == 1 && boxes.size() >= 16) {
      header = 16;
      size = big_endian(boxes.subspan(8, 8));
    } else if (size == 0) {
      size = boxes.size();
    }
    if (size < header) return;
    const Bytes box = boxes.first(std::min<uint64_t>(size, boxes.size()));
    f(type, box.subspan(header));
    boxes = boxes.subspan(box.size());
  }
}

class References {
 public:
  // The contents of the box iref.
  void add(Bytes references) {
    if (references.size() < 4) return;
    const size_t width = references[0] == 0 ? 2 : 4;  // of a number, by the version
    for_each_box(references.subspan(4), [&](std::string_view type, Bytes numbers) {
      const bool is_derived = type == "dimg", is_auxiliary = type == "auxl";
      if ((!is_derived && !is_auxiliary) || numbers.size() < width + 2) return;
      const uint64_t from = big_endian(numbers.first(width));
      numbers = numbers.subspan(width + 2);  // and the count
      for (; numbers.size() >= width; numbers = numbers.subspan(width)) {
        const uint64_t to = big_endian(numbers.first(width));
        // An image is decoded with its auxiliary image, such as alpha.
        items_[is_derived ? from : to].parts.push_back(is_derived ? to : from);
      }
    });
  }

  bool end() {
    return std::ranges::all_of(items_, [&](auto& item) { return count_parts(item.second, 0); });
  }

 private:
  struct Item {
    std::vector<uint64_t> parts;
    bool counted = false;
    int levels = 0;
    size_t images = 1;  // with all parts of parts
  };

  // False where there are too many.
  bool count_parts(Item& item, int depth) {
    constexpr int max_levels = 8;
    constexpr size_t max_images = 1 + (1 << 16);
    if (item.counted) return depth + item.levels <= max_levels;
    if (depth > max_levels) return false;  // also an image that is made of itself
    for (const uint64_t number : item.parts) {
      const auto part = items_.find(number);
      if (part != items_.end() && !count_parts(part->second, depth + 1)) return false;
      item.levels = std::max(item.levels, 1 + (part == items_.end() ? 0 : part->second.levels));
      item.images += part == items_.end() ? 1 : part->second.images;
      if (item.images > max_images) return false;
    }
    item.counted = true;
    return depth + item.levels <= max_levels;
  }

  std::unordered_map<uint64_t, Item> items_;
};

}  // namespace

bool heif_references_end(std::span<const uint8_t> file) {
  References references;
  for_each_box(file, [&](std::string_view type, Bytes meta) {
    if (type != "meta" || meta.size() < 4) return;
    for_each_box(meta.subspan(4), [&](std::string_view inner, Bytes contents) {
      if (inner == "iref") references.add(contents);
    });
  });
  return references.end();
}

}  // namespace tandem
