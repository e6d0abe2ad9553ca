#include "tandem/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors_parts.h"
#include "tandem/files/sha256.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "tensor data is little-endian and copied unchanged");

constexpr std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
constexpr std::size_t length_bytes = 8;
constexpr const char* digest_key = "tandem.sha256";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName dtype_names[] = {{"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16},
                                     {"U8", DType::u8},   {"I32", DType::i32}, {"I64", DType::i64}};

std::string_view file_name_of(DType dtype) {
  return std::ranges::find(dtype_names, dtype, &DTypeName::dtype)->name;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes(), static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype())};
}

// Contiguous copies on the host. GPU tensors are made contiguous on the GPU; all copies are awaited together.
std::vector<Tensor> to_host(const NamedTensors& tensors) {
  std::vector<Tensor> all;
  std::vector<StreamView> streams;
  for (const NamedTensor& named : tensors) {
    const Tensor dense = named.tensor.detach().contiguous();
    const Device device = dense.device();
    if (!device.is_cuda() || dense.numel() == 0) {
      all.push_back(dense.cpu());
      continue;
    }
    all.push_back(Tensor::empty(dense.shape(), dense.dtype()));
    const StreamView stream = current_stream(device);
    on_backend(device, "safetensors", [&]<Backend B>() {
      copy_bytes<B>(all.back().bytes(), dense.bytes(), bytes_of(dense).size(), stream);
    });
    if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
  }
  for (const StreamView stream : streams) stream.synchronize();
  return all;
}

// One tensor in the header.
struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

// Refuses duplicate keys, of which the JSON parser would silently drop all but one.
Json parse_header(std::string_view text, const std::string& name) {
  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end && !open_objects.empty()) open_objects.pop_back();
    if (event == Json::parse_event_t::key && !open_objects.back().insert(value.get<std::string>()).second)
      duplicate = value.get<std::string>();
    check(depth < 8, "[safetensors] {}: the header is nested too deeply", name);
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, on_event);
  } catch (const Json::exception&) {
    fail("[safetensors] {}: the header is not valid JSON", name);
  }
  check(duplicate.empty(), "[safetensors] {}: '{}' is in the header twice", name, duplicate);
  check(header.is_object(), "[safetensors] {}: expected a JSON object as header", name);
  return header;
}

std::uint64_t to_count(const Json& value, const std::string& name, const std::string& tensor) {
  constexpr auto max_count = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= max_count,
        "[safetensors] {}: tensor '{}': expected a size or offset, got {}", name, tensor, value.dump());
  return value.get<std::uint64_t>();
}

Shape to_shape(const Json& value, const std::string& name, const std::string& tensor) {
  check(value.is_array() && value.size() <= max_rank,
        "[safetensors] {}: tensor '{}': expected a shape of at most {} sizes", name, tensor, max_rank);
  std::vector<std::int64_t> sizes;
  for (const Json& size : value) sizes.push_back(static_cast<std::int64_t>(to_count(size, name, tensor)));
  try {
    return Shape(std::span<const std::int64_t>(sizes));
  } catch (const Error&) {
    fail("[safetensors] {}: tensor '{}': the product of its sizes {} is too large", name, tensor,
         Dims(std::span<const std::int64_t>(sizes)).to_string());
  }
}

Entry to_entry(const std::string& tensor, const Json& value, const std::string& name) {
  check(value.is_object() && value.contains("dtype") && value.contains("shape") &&
            value.contains("data_offsets") && value["dtype"].is_string(),
        "[safetensors] {}: tensor '{}': expected dtype, shape and data_offsets", name, tensor);
  const std::string dtype = value["dtype"].get<std::string>();
  const auto* known = std::ranges::find(dtype_names, dtype, &DTypeName::name);
  check(known != std::end(dtype_names),
        "[safetensors] {}: tensor '{}': expected a dtype of F32, F64, BF16, U8, I32, I64, got {}", name,
        tensor, dtype);
  const Json& offsets = value["data_offsets"];
  check(offsets.is_array() && offsets.size() == 2, "[safetensors] {}: tensor '{}': expected two data_offsets",
        name, tensor);
  Entry entry{tensor, known->dtype, to_shape(value["shape"], name, tensor),
              to_count(offsets[0], name, tensor), to_count(offsets[1], name, tensor)};
  const auto numel = static_cast<std::uint64_t>(entry.shape.numel());
  const std::uint64_t size = size_of(entry.dtype);
  check(entry.begin <= entry.end && numel <= std::numeric_limits<std::uint64_t>::max() / size &&
            entry.end - entry.begin == numel * size,
        "[safetensors] {}: tensor '{}': shape {} of {} does not fill the bytes {} to {}", name, tensor,
        entry.shape.to_string(), dtype, entry.begin, entry.end);
  return entry;
}

// Sorts the entries by offset. Together they must cover the data exactly once.
void check_layout(std::vector<Entry>& entries, std::uint64_t data_size, const std::string& name) {
  std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    check(entry.end <= data_size,
          "[safetensors] {}: tensor '{}' ends at byte {} of the data, which has {}: the file is truncated",
          name, entry.name, entry.end, data_size);
    check(entry.begin >= covered, "[safetensors] {}: tensor '{}' overlaps the one before it", name,
          entry.name);
    check(entry.begin == covered, "[safetensors] {}: the data has a gap before tensor '{}'", name,
          entry.name);
    covered = entry.end;
  }
  check(covered == data_size, "[safetensors] {}: {} bytes follow the last tensor", name, data_size - covered);
}

void check_digest(TensorFile& file, std::string_view data, const std::string& name) {
  const auto stored = file.metadata.find(digest_key);
  if (stored == file.metadata.end()) return;
  check(stored->second == sha256_hex(data),
        "[safetensors] {}: the data does not match its SHA-256: the file is damaged", name);
  file.metadata.erase(stored);
}

// The first bytes of the file: the length of the header and the header.
std::string make_file_header(const std::map<std::string, std::string>& metadata, const std::string& digest,
                             const Json& entries) {
  Json header = Json::object();
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  header["__metadata__"][digest_key] = digest;
  header.update(entries);
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    fail("[safetensors] expected names and metadata in valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  check(text.size() <= max_header_bytes, "[safetensors] the header has {} bytes, the limit is {}",
        text.size(), max_header_bytes);
  std::string length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length += static_cast<char>(std::uint64_t{text.size()} >> (8 * i) & 0xFF);
  return length + text;
}

}  // namespace

FileParts safetensors_parts(const TensorFile& file) {
  std::set<std::string> names;
  std::size_t data_size = 0;
  Json entries = Json::object();
  for (const NamedTensor& named : file.tensors) {
    check(named.tensor.defined(), "[safetensors] tensor '{}' is undefined", named.name);
    check(named.name != "__metadata__" && names.insert(named.name).second,
          "[safetensors] expected distinct tensor names, got '{}' {}", named.name,
          named.name == "__metadata__" ? "which the format reserves" : "twice");
    const Shape& shape = named.tensor.shape();
    const std::size_t size = bytes_of(named.tensor).size();
    entries[named.name] = {{"dtype", file_name_of(named.tensor.dtype())},
                           {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                           {"data_offsets", {data_size, data_size + size}}};
    data_size += size;
  }
  const auto header_with = [metadata = file.metadata, entries](const std::string& digest) {
    return make_file_header(metadata, digest, entries);
  };
  FileParts parts{.header_size = header_with(sha256_hex({})).size()};  // all digests have the same length
  const auto tensors = std::make_shared<const std::vector<Tensor>>(to_host(file.tensors));
  for (const Tensor& tensor : *tensors) parts.body.push_back(bytes_of(tensor));
  parts.keep_alive = tensors;
  parts.make_header = [header_with, body = parts.body] {
    Sha256 hash;
    for (const std::span<const std::byte> piece : body) hash.update(piece);
    return header_with(hash.hex_digest());
  };
  return parts;
}

std::string to_safetensors(const TensorFile& file) {
  return safetensors_parts(file).to_string();
}

TensorFile parse_safetensors(std::string_view bytes, const std::string& name) {
  check(bytes.size() >= length_bytes, "[safetensors] {}: expected at least 8 bytes, got {}", name,
        bytes.size());
  std::uint64_t header_size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    header_size |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  const std::uint64_t left = bytes.size() - length_bytes;
  check(header_size <= left && header_size <= max_header_bytes && left > 0 && bytes[length_bytes] == '{',
        "[safetensors] {}: not a safetensors file, or truncated (a header of {} bytes in a file of {})", name,
        header_size, bytes.size());
  const Json header = parse_header(bytes.substr(length_bytes, header_size), name);
  const std::string_view data = bytes.substr(length_bytes + header_size);

  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key != "__metadata__") {
      entries.push_back(to_entry(key, value, name));
      continue;
    }
    check(value.is_object(), "[safetensors] {}: expected an object as __metadata__", name);
    for (const auto& [entry, text] : value.items()) {
      check(text.is_string(), "[safetensors] {}: expected text as metadata '{}'", name, entry);
      file.metadata[entry] = text.get<std::string>();
    }
  }
  check_layout(entries, data.size(), name);
  check_digest(file, data, name);
  for (const Entry& entry : entries) {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    if (entry.end > entry.begin)
      std::memcpy(tensor.bytes(), data.data() + entry.begin, entry.end - entry.begin);
    file.tensors.push_back({entry.name, tensor});
  }
  return file;
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  PendingFile("safetensors", path, safetensors_parts(file)).finish();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();
  return parse_safetensors(read_file("safetensors", path, no_limit), path.string());
}

}  // namespace tandem
