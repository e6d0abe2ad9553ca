// Parses Python pickles (protocols 0 to 5) without importing or calling anything. A class or function that
// Python would import becomes its name, a call becomes a record of the call. The caller interprets them and
// must refuse what it does not know.
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
  global,  // `integer` is its index in Pickle::names
  call,    // of the value `callee` with the tuple `arguments`; `items` are keys and values added afterwards
  persistent  // an object outside the pickle; the only item is its id
};

// Refers to other values by their index in Pickle::values. Containers may contain themselves, so the caller
// must bound the depth of its traversal.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::uint32_t callee = 0, arguments = 0;
  std::int64_t integer = 0;  // also of a boolean
  double number = 0;
  std::string_view text;             // a view into the pickle or Pickle::texts
  std::vector<std::uint32_t> items;  // of a dict: keys and values alternate
};

struct PickleName {
  std::string name;  // "collections.OrderedDict"
  bool called = false;
};

struct Pickle {
  std::vector<PickleValue> values;
  std::deque<std::string> texts;
  std::uint32_t root = 0;
  std::vector<PickleName> names;  // everything Python would import or call, in order of appearance
  std::size_t size = 0;           // in bytes, including STOP

  const PickleValue& at(std::uint32_t value) const { return values[value]; }
  // The name of a global, or of the callee of a call; empty for any other value.
  std::string_view name_of(const PickleValue& value) const;
};

// Parses the first pickle in `bytes`, which must outlive the result. Throws Error for invalid or truncated
// pickles and beyond the limits of 64 MiB, four million values, 100,000 names and names of 512 bytes; `name`
// is the file name in its message. Time and memory are linear in the size.
Pickle parse_pickle(std::string_view bytes, const std::string& name);

// What could be parsed before the first error: Python would have imported and called these names too. `root`
// is valid only without a problem, and `size` is the position of the error.
struct PartialPickle {
  Pickle pickle;
  std::string problem;  // the text of the Error
};
PartialPickle parse_pickle_partly(std::string_view bytes, const std::string& name);

}  // namespace tandem
