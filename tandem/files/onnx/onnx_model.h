// The contents of an ONNX file (https://onnx.ai): a graph of operators with constants, and facts about it.
// Plain values; onnx_reader.h and onnx_writer.h turn bytes into them and back.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// Element types, with ONNX's numbers. A file may have others.
enum class OnnxType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};

// "f32"; "type 23" for one that is not in the list.
std::string name_of(OnnxType type);
// Bytes per element; 0 for text and for a type that is not in the list.
std::int64_t size_of(OnnxType type);

using OnnxDims = std::vector<std::int64_t>;

// The number of elements. Throws Error for a negative size and for more than 63 bits.
std::int64_t element_count(const OnnxDims& dims);
// "[1, 3, 224, 224]"
std::string to_string(const OnnxDims& dims);

// An array, row-major in little-endian bytes.
struct OnnxTensor {
  std::string name = {};
  OnnxType type = OnnxType::f32;
  OnnxDims dims = {};
  std::string data = {};
  std::string external = {};  // the file that has the data, which is never opened; empty: it is here

  std::int64_t count() const { return element_count(dims); }
  template <class T>
  const T* values() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

struct OnnxGraph;

struct OnnxAttribute {
  enum class Kind : std::int32_t {
    number = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    numbers = 6,
    integers = 7
  };

  std::string name = {};
  Kind kind = Kind::integer;  // or another of ONNX's numbers, whose value is not kept
  float number = 0;
  std::int64_t integer = 0;
  std::string text = {};
  std::vector<float> numbers = {};
  std::vector<std::int64_t> integers = {};
  std::vector<OnnxTensor> tensors = {};
  std::vector<OnnxGraph> graphs;  // without = {}, for which Clang needs the whole type
};

struct OnnxNode {
  std::string op = {};
  std::string domain = {};  // empty: ONNX's own operators
  std::string name = {};
  std::vector<std::string> inputs = {}, outputs = {};  // an empty name is an absent optional one
  std::vector<OnnxAttribute> attributes = {};
};

// One size of an input or output: a number, or a name for one that is known at run time only.
struct OnnxSize {
  std::int64_t value = -1;  // negative: unknown
  std::string name = {};
};

struct OnnxValue {
  std::string name = {};
  OnnxType type = OnnxType::undefined;  // undefined: not a tensor
  std::vector<OnnxSize> sizes = {};
  bool has_shape = true;

  std::string to_string() const;  // "u8 [height, width, 3]"
};

struct OnnxGraph {
  std::string name = {};
  std::vector<OnnxNode> nodes = {};
  std::vector<OnnxTensor> constants = {};  // ONNX calls them initializers
  std::vector<OnnxValue> inputs = {}, outputs = {};
};

struct OnnxModel {
  std::int64_t ir_version = 8;
  std::string producer = {}, producer_version = {};
  std::vector<std::pair<std::string, std::int64_t>> opsets = {};  // domain and version
  std::map<std::string, std::string> metadata = {};
  std::int64_t functions = 0;  // operators that the file defines itself
  OnnxGraph graph = {};
};

// IEEE half precision, to nearest, ties to even; beyond 65504 infinity.
std::uint16_t to_half(float value);

}  // namespace tandem
