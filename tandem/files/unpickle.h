// A machine for Python's pickles (protocols 0 to 5) that imports nothing and calls nothing. Where Python
// would look up a class or function there is its name, where it would call one there is a note of the call;
// what they mean is for the reader of the result to know, and all it does not know it must refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  number,
  text,
  bytes,
  big_integer,  // `text` holds little-endian bytes, or decimal digits in protocol 0
  tuple,
  list,
  dict,
  set,
  global,     // `integer` is its place in Pickle::names
  call,       // of the value `callee`, with the tuple `arguments`; `items` are keys and values put in after
  persistent  // something kept outside the pickle; the only item is its id
};

// Refers to other values by their place in Pickle::values. Lists may hold themselves: whoever walks them must
// bound its depth.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::uint32_t callee = 0, arguments = 0;
  std::int64_t integer = 0;  // of a boolean too
  double number = 0;
  std::string_view text;             // in the pickle itself or in Pickle::texts
  std::vector<std::uint32_t> items;  // of a dict: key and value in turn
};

struct PickleName {
  std::string name;  // "collections.OrderedDict"
  bool called = false;
};

struct Pickle {
  std::vector<PickleValue> values;
  std::deque<std::string> texts;
  std::uint32_t root = 0;
  std::vector<PickleName> names;  // all that Python would have imported or called, in order of appearance
  std::size_t size = 0;           // bytes up to and with the end of the pickle

  const PickleValue& at(std::uint32_t value) const { return values[value]; }
  // The name of a global, or of what a call calls; empty for any other value.
  std::string_view name_of(const PickleValue& value) const;
};

// The first pickle in `bytes`, which must outlive it. Anything damaged, cut short, or beyond the limits (64
// MiB, four million values, names of 512 bytes) is an Error; `name` stands in it. Time and memory are linear.
Pickle parse_pickle(std::string_view bytes, const std::string& name);

}  // namespace tandem
