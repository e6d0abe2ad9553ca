#include "tandem/image/heif_references.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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

// The numbers of a box one after the other; zero behind its end.
class Numbers {
 public:
  explicit Numbers(Bytes bytes) : rest_(bytes) {}

  uint64_t next(size_t width) {
    const Bytes number = rest_.first(std::min(width, rest_.size()));
    is_cut_off_ |= number.size() < width;
    rest_ = rest_.subspan(number.size());
    return is_cut_off_ ? 0 : big_endian(number);
  }
  bool is_cut_off() const { return is_cut_off_; }

 private:
  Bytes rest_;
  bool is_cut_off_ = false;
};

// Where the data of the items is: the boxes iloc and idat of one meta box.
class Canvases {
 public:
  explicit Canvases(Bytes file) : file_(file) {}

  // False if readers may understand it differently.
  bool add_meta(Bytes meta) {
    if (has_meta_) return false;
    has_meta_ = true;
    std::optional<Bytes> types, places, data;
    bool is_unique = true;
    for_each_box(meta.subspan(std::min<size_t>(4, meta.size())), [&](std::string_view type, Bytes contents) {
      for (auto& [name, box] :
           {std::pair{"iinf", &types}, std::pair{"iloc", &places}, std::pair{"idat", &data}})
        if (type == name) {
          is_unique &= !box->has_value();
          *box = contents;
        }
    });
    data_ = data.value_or(Bytes());
    return is_unique && (!types || add_types(*types)) && (!places || add_places(*places));
  }

  std::vector<HeifCanvas> take() { return std::move(found_); }

 private:
  enum class Kind { grid, overlay };

  bool add_types(Bytes box) {
    const size_t count_width = !box.empty() && box[0] == 0 ? 2 : 4;
    bool is_unique = true;
    for_each_box(box.subspan(std::min(4 + count_width, box.size())), [&](std::string_view type, Bytes entry) {
      if (type != "infe" || entry.size() < 4 || entry[0] < 2) return;
      Numbers numbers(entry.subspan(4));
      const uint64_t item = numbers.next(entry[0] == 2 ? 2 : 4);
      numbers.next(2);  // protection
      const uint64_t kind = numbers.next(4);
      is_unique &= items_.insert(item).second;
      if (kind == 0x67726964) kinds_.emplace(item, Kind::grid);
      if (kind == 0x696f766c) kinds_.emplace(item, Kind::overlay);
    });
    return is_unique;
  }

  bool add_places(Bytes box) {
    if (box.size() < 4) return true;
    const int version = box[0];
    if (version > 2) return false;
    Numbers numbers(box.subspan(4));
    const uint64_t widths = numbers.next(2);
    const size_t offset_width = widths >> 12, length_width = widths >> 8 & 15, base_width = widths >> 4 & 15,
                 index_width = version >= 1 ? widths & 15 : 0;
    for (const size_t width : {offset_width, length_width, base_width, index_width})
      if (width != 0 && width != 4 && width != 8) return false;  // libheif skips others
    std::unordered_set<uint64_t> placed;
    const uint64_t count = numbers.next(version < 2 ? 2 : 4);
    for (uint64_t i = 0; i < count && !numbers.is_cut_off(); ++i) {
      const uint64_t item = numbers.next(version < 2 ? 2 : 4);
      const uint64_t method = version >= 1 ? numbers.next(2) & 15 : 0;
      numbers.next(2);  // data reference
      const uint64_t base = numbers.next(base_width);
      const uint64_t extents = numbers.next(2);
      std::vector<uint8_t> header;                                           // the first bytes of the item
      const bool is_stored = offset_width + length_width + index_width > 0;  // else all are empty
      for (uint64_t extent = 0; is_stored && extent < extents && !numbers.is_cut_off(); ++extent) {
        numbers.next(index_width);
        const uint64_t offset = base + numbers.next(offset_width);
        append(header, method == 1 ? data_ : file_, offset, numbers.next(length_width));
      }
      if (numbers.is_cut_off()) return true;
      if (!placed.insert(item).second) return false;
      if (const auto kind = kinds_.find(item); kind != kinds_.end()) add_canvas(kind->second, header);
    }
    return true;
  }

  static void append(std::vector<uint8_t>& header, Bytes from, uint64_t offset, uint64_t length) {
    constexpr size_t max_header = 20;
    if (offset >= from.size()) return;
    const Bytes bytes = from.subspan(offset).first(
        std::min<uint64_t>({length, from.size() - offset, max_header - header.size()}));
    header.insert(header.end(), bytes.begin(), bytes.end());
  }

  void add_canvas(Kind kind, const std::vector<uint8_t>& header) {
    Numbers numbers(header);
    numbers.next(1);  // version
    const size_t width = numbers.next(1) & 1 ? 4 : 2;
    if (kind == Kind::grid)
      numbers.next(2);  // rows and columns
    else
      numbers.next(8);  // the color of the background
    HeifCanvas canvas;
    canvas.width = numbers.next(width);
    canvas.height = numbers.next(width);
    if (!numbers.is_cut_off()) found_.push_back(canvas);
  }

  Bytes file_, data_;
  bool has_meta_ = false;
  std::unordered_set<uint64_t> items_;
  std::unordered_map<uint64_t, Kind> kinds_;
  std::vector<HeifCanvas> found_;
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

std::optional<std::vector<HeifCanvas>> heif_canvases(std::span<const uint8_t> file) {
  Canvases canvases(file);
  bool is_fine = true;
  for_each_box(file, [&](std::string_view type, Bytes meta) {
    if (type == "meta") is_fine = is_fine && canvases.add_meta(meta);
  });
  if (!is_fine) return std::nullopt;
  return canvases.take();
}

}  // namespace tandem
