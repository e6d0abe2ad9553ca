// Reads the stored cases of tests/golden: results of SciPy, NumPy and PyTorch that Tandem's operations are
// held against (written by the make_*.py beside this file). load("correlation") gives every case of
// correlation.json with its arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tests/paths.h"

namespace tandem::golden {

using Bytes = std::vector<std::byte>;

struct Array {
  std::string dtype;  // f32, f64, u8, i32 or i64
  std::vector<int64_t> shape;
  size_t count = 0;                   // elements
  const std::byte* data = nullptr;    // little-endian, aligned to 8 bytes, kept alive by `file`
  std::shared_ptr<const Bytes> file;  // the whole .bin

  // The elements in row-major order, each converted to T.
  template <class T>
  std::vector<T> values() const {
    if (dtype == "f32") return converted<T, float>();
    if (dtype == "f64") return converted<T, double>();
    if (dtype == "u8") return converted<T, uint8_t>();
    if (dtype == "i32") return converted<T, int32_t>();
    return converted<T, int64_t>();
  }

 private:
  template <class T, class Stored>
  std::vector<T> converted() const {
    std::vector<T> result(count);
    for (size_t i = 0; i < count; ++i) {
      Stored value;
      std::memcpy(&value, data + i * sizeof(Stored), sizeof(Stored));
      result[i] = static_cast<T>(value);
    }
    return result;
  }
};

struct Case {
  std::string name;
  nlohmann::json params;  // the plain values of the call, such as {"op": "sum", "axes": [0]}
  std::map<std::string, Array> arrays;

  const Array& array(const std::string& key) const {
    const auto found = arrays.find(key);
    check(found != arrays.end(), "[golden] expected an array '{}' in case '{}', found none", key, name);
    return found->second;
  }
};

inline size_t size_of(const std::string& dtype) {
  static const std::map<std::string, size_t> sizes = {
      {"f32", 4}, {"f64", 8}, {"u8", 1}, {"i32", 4}, {"i64", 8}};
  const auto found = sizes.find(dtype);
  check(found != sizes.end(), "[golden] expected dtype f32, f64, u8, i32 or i64, got '{}'", dtype);
  return found->second;
}

inline Array read_array(const nlohmann::json& entry, const std::shared_ptr<const Bytes>& file,
                        const std::string& owner) {
  Array array{
      .dtype = entry.at("dtype"), .shape = entry.at("shape"), .count = 1, .data = nullptr, .file = file};
  for (const int64_t extent : array.shape) array.count *= static_cast<size_t>(extent);
  const size_t offset = entry.at("offset");
  const size_t bytes = array.count * size_of(array.dtype);
  check(offset % 8 == 0 && offset <= file->size() && bytes <= file->size() - offset,
        "[golden] expected an aligned array inside {} bytes, got {} bytes at {} in case '{}'", file->size(),
        bytes, offset, owner);
  array.data = file->data() + offset;
  return array;
}

inline std::shared_ptr<const Bytes> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  check(file.good(), "[golden] cannot read {}", path);
  auto bytes = std::make_shared<Bytes>(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  return bytes;
}

// All cases of tests/golden/<name>.json. Throws tandem::Error when a file is missing or an array lies outside
// its file.
inline std::vector<Case> load(const std::string& name) {
  const std::string stem = std::string(source_folder) + "/tests/golden/" + name;
  std::ifstream index(stem + ".json");
  check(index.good(), "[golden] cannot read {}.json", stem);
  const auto file = read_bytes(stem + ".bin");
  std::vector<Case> cases;
  for (const auto& entry : nlohmann::json::parse(index)) {
    Case one{.name = entry.at("name"), .params = entry.at("params"), .arrays = {}};
    for (const auto& [key, array] : entry.at("arrays").items())
      one.arrays[key] = read_array(array, file, one.name);
    cases.push_back(std::move(one));
  }
  return cases;
}

// Those whose "kind" is this one.
inline std::vector<Case> load(const std::string& name, const std::string& kind) {
  std::vector<Case> cases = load(name);
  std::erase_if(cases, [&](const Case& one) { return one.params.at("kind") != kind; });
  return cases;
}

}  // namespace tandem::golden
