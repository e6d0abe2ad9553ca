#include "tandem/files/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/small_floats.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

template <class From, class To, class Convert>
bool convert_all(const std::byte* from, std::size_t count, std::byte* to, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof value);
    const To converted = convert(value);
    std::memcpy(to + i * sizeof(To), &converted, sizeof converted);
  }
  return true;
}

// Integers of a wider type that has all their values.
template <class From, class To>
bool widen(const std::byte* from, std::size_t count, std::byte* to) {
  return convert_all<From, To>(from, count, to, [](From value) { return To{value}; });
}

template <class From, float (*to_float)(From)>
bool to_f32(const std::byte* from, std::size_t count, std::byte* to) {
  return convert_all<From, float>(from, count, to, to_float);
}

bool to_bool(const std::byte* from, std::size_t count, std::byte* to) {
  using U8 = std::uint8_t;
  return convert_all<U8, U8>(from, count, to, [](U8 value) { return U8{value != 0}; });
}

bool u64_to_i64(const std::byte* from, std::size_t count, std::byte* to) {
  bool fits = true;
  convert_all<std::uint64_t, std::int64_t>(from, count, to, [&](std::uint64_t value) {
    fits &= value <= std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(value);
  });
  return fits;
}

// The first six are written; the others are read as the smallest dtype that has all their values.
constexpr SafetensorsType types[] = {
    {"F32", 4, DType::f32},
    {"F64", 8, DType::f64},
    {"BF16", 2, DType::bf16},
    {"U8", 1, DType::u8},
    {"I32", 4, DType::i32},
    {"I64", 8, DType::i64},
    {"F16", 2, DType::f32, to_f32<std::uint16_t, from_half>},
    {"F8_E4M3", 1, DType::f32, to_f32<std::uint8_t, from_float8_e4m3>},
    {"F8_E5M2", 1, DType::f32, to_f32<std::uint8_t, from_float8_e5m2>},
    {"BOOL", 1, DType::u8, to_bool},
    {"I8", 1, DType::i32, widen<std::int8_t, std::int32_t>},
    {"I16", 2, DType::i32, widen<std::int16_t, std::int32_t>},
    {"U16", 2, DType::i32, widen<std::uint16_t, std::int32_t>},
    {"U32", 4, DType::i64, widen<std::uint32_t, std::int64_t>},
    {"U64", 8, DType::i64, u64_to_i64},
};

// Takes the events of the JSON parser.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, const SafetensorsLimits& limits) : file_(file), limits_(limits) {}

  SafetensorsHeader take() { return std::move(header_); }

  // The interface of nlohmann::json::sax_parse().
  bool null() { return scalar("null"); }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return scalar(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { return scalar(text); }
  bool number_unsigned(std::uint64_t value) {
    if (place() != Place::shape && place() != Place::offsets) return scalar(fmt::format("{}", value));
    require(value <= std::numeric_limits<std::int64_t>::max(), "expected a size or offset, got {}", value);
    require(place() != Place::shape || sizes_.size() < max_rank, "expected a shape of at most {} sizes",
            max_rank);
    require(place() != Place::offsets || offsets_.size() < 2, "expected two data_offsets");
    (place() == Place::shape ? sizes_ : offsets_).push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool string(std::string& text) {
    if (place() == Place::metadata) {
      check(header_.metadata.size() < limits_.max_metadata,
            "[safetensors] {}: expected at most {} entries of metadata", file_, limits_.max_metadata);
      check_new(header_.metadata.emplace(key_, std::move(text)).second, key_);
      return true;
    }
    if (place() != Place::entry || field_ != "dtype") return scalar('"' + text + '"');
    dtype_ = std::move(text);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not in JSON
  bool start_object(std::size_t) {
    if (place() == Place::outside || place() == Place::ignored) return push(next_inside());
    if (place() == Place::tensors && key_ == "__metadata__") return push(Place::metadata);
    if (place() == Place::tensors) {
      check(header_.tensors.size() < limits_.max_tensors, "[safetensors] {}: expected at most {} tensors",
            file_, limits_.max_tensors);
      seen_ = {};
      return push(Place::entry);
    }
    return is_unknown_field() ? push(Place::ignored) : scalar("an object");
  }
  bool start_array(std::size_t) {
    if (place() == Place::ignored || is_unknown_field()) return push(Place::ignored);
    if (place() == Place::entry && field_ == "shape") {
      sizes_.clear();
      return push(Place::shape);
    }
    if (place() == Place::entry && field_ == "data_offsets") {
      offsets_.clear();
      return push(Place::offsets);
    }
    return scalar("a list");
  }
  bool end_object() {
    if (place() == Place::entry) finish_entry();
    return pop();
  }
  bool end_array() { return pop(); }
  bool key(std::string& text) {
    if (place() == Place::tensors || place() == Place::metadata) {
      key_ = std::move(text);
      if (place() == Place::tensors && key_ == "__metadata__")
        check_new(!std::exchange(has_metadata_, true), key_);
    } else if (place() == Place::entry) {
      field_ = std::move(text);
      if (field_ == "dtype") check_new(!std::exchange(seen_.dtype, true), field_);
      if (field_ == "shape") check_new(!std::exchange(seen_.shape, true), field_);
      if (field_ == "data_offsets") check_new(!std::exchange(seen_.offsets, true), field_);
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  enum class Place { outside, tensors, metadata, entry, shape, offsets, ignored };
  struct Fields {
    bool dtype = false, shape = false, offsets = false;
  };
  static constexpr std::size_t max_depth = 8;

  Place place() const { return places_.back(); }
  Place next_inside() const { return place() == Place::outside ? Place::tensors : Place::ignored; }
  bool push(Place place) {
    check(places_.size() <= max_depth, "[safetensors] {}: the header is nested too deeply", file_);
    places_.push_back(place);
    return true;
  }
  bool pop() {
    places_.pop_back();
    return true;
  }
  bool is_unknown_field() const {
    return place() == Place::entry && field_ != "dtype" && field_ != "shape" && field_ != "data_offsets";
  }

  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (!condition)
      fail("[safetensors] {}: tensor '{}': {}", file_, one_line(key_),
           fmt::format(text, std::forward<Args>(args)...));
  }
  void check_new(bool is_new, const std::string& key) const {
    check(is_new, "[safetensors] {}: '{}' is in the header twice", file_, one_line(key));
  }

  // A value of another kind than its place needs, unless nothing there is read.
  bool scalar(const std::string& text) {
    check(place() != Place::outside, "[safetensors] {}: expected a JSON object as header", file_);
    check(place() != Place::metadata, "[safetensors] {}: expected text as metadata '{}'", file_,
          one_line(key_));
    check(place() != Place::tensors || key_ != "__metadata__",
          "[safetensors] {}: expected an object as __metadata__", file_);
    require(place() != Place::tensors && !(place() == Place::entry && field_ == "dtype"),
            "expected dtype, shape and data_offsets");
    require(place() != Place::shape && place() != Place::offsets, "expected a size or offset, got {}",
            shorten(one_line(text), 40));
    require(place() != Place::entry || field_ != "shape", "expected a shape of at most {} sizes", max_rank);
    require(place() != Place::entry || field_ != "data_offsets", "expected two data_offsets");
    return true;
  }

  void finish_entry() {
    require(seen_.dtype && seen_.shape && seen_.offsets, "expected dtype, shape and data_offsets");
    const auto* const type = std::ranges::find(types, dtype_, &SafetensorsType::name);
    if (type == std::end(types)) {
      std::vector<std::string_view> names;
      for (const SafetensorsType& known : types) names.push_back(known.name);
      require(false, "expected a dtype of {}, got {}", fmt::join(names, ", "), shorten(one_line(dtype_), 40));
    }
    require(offsets_.size() == 2, "expected two data_offsets");
    SafetensorsEntry& entry = header_.tensors.emplace_back();
    entry.type = type;
    entry.begin = static_cast<std::uint64_t>(offsets_[0]);
    entry.end = static_cast<std::uint64_t>(offsets_[1]);
    try {
      entry.shape = Shape(std::span<const std::int64_t>(sizes_));
    } catch (const Error&) {
      require(false, "the product of its sizes {} is too large",
              Dims(std::span<const std::int64_t>(sizes_)).to_string());
    }
    const auto numel = static_cast<std::uint64_t>(entry.shape.numel());
    require(entry.begin <= entry.end && numel <= std::numeric_limits<std::uint64_t>::max() / type->size &&
                entry.end - entry.begin == numel * type->size,
            "shape {} of {} does not fill the bytes {} to {}", entry.shape.to_string(), dtype_, entry.begin,
            entry.end);
    entry.name = std::move(key_);
  }

  const std::string& file_;
  const SafetensorsLimits& limits_;
  SafetensorsHeader header_;
  std::vector<Place> places_{Place::outside};
  std::string key_, field_;  // of the value that comes next
  bool has_metadata_ = false;
  Fields seen_;  // of the entry that is read, as are the next three
  std::string dtype_;
  std::vector<std::int64_t> sizes_, offsets_;
};

void check_names(const std::vector<SafetensorsEntry>& entries, const std::string& name) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  std::ranges::sort(order, {}, &SafetensorsEntry::name);
  const auto twice = std::ranges::adjacent_find(order, {}, &SafetensorsEntry::name);
  if (twice != order.end())
    fail("[safetensors] {}: '{}' is in the header twice", name, one_line((*twice)->name));
}

// Sorts the entries by offset. Together they must cover the data exactly once.
void check_layout(std::vector<SafetensorsEntry>& entries, std::uint64_t data_size, const std::string& name) {
  std::ranges::stable_sort(entries, {},
                           [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    check(entry.end <= data_size,
          "[safetensors] {}: tensor '{}' ends at byte {} of the data, which has {}: the file is truncated",
          name, one_line(entry.name), entry.end, data_size);
    check(entry.begin >= covered, "[safetensors] {}: tensor '{}' overlaps the one before it", name,
          one_line(entry.name));
    check(entry.begin == covered, "[safetensors] {}: the data has a gap before tensor '{}'", name,
          one_line(entry.name));
    covered = entry.end;
  }
  check(covered == data_size, "[safetensors] {}: {} bytes follow the last tensor", name, data_size - covered);
}

}  // namespace

std::string_view safetensors_type_name(DType dtype) {
  return std::ranges::find(types, dtype, &SafetensorsType::dtype)->name;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_size,
                                           const std::string& name, const SafetensorsLimits& limits) {
  HeaderReader reader(name, limits);
  check(nlohmann::json::sax_parse(text, &reader), "[safetensors] {}: the header is not valid JSON", name);
  SafetensorsHeader header = reader.take();
  check_names(header.tensors, name);
  check_layout(header.tensors, data_size, name);
  return header;
}

}  // namespace tandem
