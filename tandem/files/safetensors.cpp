#include "tandem/files/safetensors.h"

#include <fmt/ranges.h>

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
#include "tandem/files/safetensors_header.h"
#include "tandem/files/safetensors_parts.h"
#include "tandem/files/sha256.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor data is little-endian and copied unchanged");

constexpr std::size_t length_bytes = 8;
constexpr const char* digest_key = "tandem.sha256";

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

void check_digest(TensorFile& file, std::string_view data, const std::string& name) {
  const auto stored = file.metadata.find(digest_key);
  if (stored == file.metadata.end()) return;
  check(stored->second == sha256_hex(data),
        "[safetensors] {}: the data does not match its SHA-256: the file is damaged", name);
  file.metadata.erase(stored);
}

void read_elements(const SafetensorsEntry& entry, const std::byte* from, const Tensor& to,
                   const std::string& name) {
  if (entry.type->convert == nullptr)
    std::memcpy(to.bytes(), from, entry.end - entry.begin);
  else
    check(entry.type->convert(from, static_cast<std::size_t>(to.numel()), to.bytes()),
          "[safetensors] {}: tensor '{}': expected {} values that fit {}", name, one_line(entry.name),
          entry.type->name, name_of(entry.type->dtype));
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail("[safetensors] expected names and metadata in valid UTF-8");
  }
}

// The first bytes of the file: the length of the header and the header. `entries` are the tensors as JSON.
std::string make_file_header(const std::map<std::string, std::string>& metadata, const std::string& digest,
                             const std::string& entries) {
  std::string text = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata)
    if (key != digest_key) text += quoted(key) + ":" + quoted(value) + ",";
  text += quoted(digest_key) + ":" + quoted(digest) + "}" + entries + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t max_bytes = SafetensorsLimits{}.max_header_bytes;
  check(text.size() <= max_bytes, "[safetensors] the header has {} bytes, the limit is {}", text.size(),
        max_bytes);
  std::string length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length += static_cast<char>(std::uint64_t{text.size()} >> (8 * i) & 0xFF);
  return length + text;
}

}  // namespace

FileParts safetensors_parts(const std::map<std::string, std::string>& metadata,
                            const std::vector<StoredTensor>& tensors,
                            std::shared_ptr<const void> keep_alive) {
  std::set<std::string_view> names;
  std::size_t data_size = 0;
  std::string entries;
  FileParts parts{.keep_alive = std::move(keep_alive)};
  for (const StoredTensor& tensor : tensors) {
    check(tensor.name != "__metadata__" && names.insert(tensor.name).second,
          "[safetensors] expected distinct tensor names, got '{}' {}", tensor.name,
          tensor.name == "__metadata__" ? "which the format reserves" : "twice");
    entries +=
        fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(tensor.name),
                    tensor.type, fmt::join(tensor.shape, ","), data_size, data_size + tensor.bytes.size());
    data_size += tensor.bytes.size();
    parts.body.push_back(tensor.bytes);
  }
  const auto header_with = [metadata, entries](const std::string& digest) {
    return make_file_header(metadata, digest, entries);
  };
  parts.header_size = header_with(sha256_hex({})).size();  // all digests have the same length
  parts.make_header = [header_with, body = parts.body] {
    Sha256 hash;
    for (const std::span<const std::byte> piece : body) hash.update(piece);
    return header_with(hash.hex_digest());
  };
  return parts;
}

FileParts safetensors_parts(const TensorFile& file) {
  for (const NamedTensor& named : file.tensors)
    check(named.tensor.defined(), "[safetensors] tensor '{}' is undefined", named.name);
  const auto tensors = std::make_shared<const std::vector<Tensor>>(to_host(file.tensors));
  std::vector<StoredTensor> stored;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    const Tensor& tensor = (*tensors)[i];
    stored.push_back(
        {file.tensors[i].name, safetensors_type_name(tensor.dtype()), tensor.shape(), bytes_of(tensor)});
  }
  return safetensors_parts(file.metadata, stored, tensors);
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
  check(header_size <= left && header_size <= SafetensorsLimits{}.max_header_bytes && left > 0 &&
            bytes[length_bytes] == '{',
        "[safetensors] {}: not a safetensors file, or truncated (a header of {} bytes in a file of {})", name,
        header_size, bytes.size());
  const std::string_view data = bytes.substr(length_bytes + header_size);
  SafetensorsHeader header =
      parse_safetensors_header(bytes.substr(length_bytes, header_size), data.size(), name);
  TensorFile file{.metadata = std::move(header.metadata)};
  check_digest(file, data, name);
  file.tensors.reserve(header.tensors.size());
  for (SafetensorsEntry& entry : header.tensors) {
    const Tensor tensor = Tensor::empty(entry.shape, entry.type->dtype);
    if (entry.end > entry.begin)
      read_elements(entry, reinterpret_cast<const std::byte*>(data.data()) + entry.begin, tensor, name);
    file.tensors.push_back({std::move(entry.name), tensor});
  }
  return file;
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  PendingFile("safetensors", path, safetensors_parts(file)).finish();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file("safetensors", path, max_weight_bytes), path.string());
}

}  // namespace tandem
