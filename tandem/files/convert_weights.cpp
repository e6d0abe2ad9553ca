#include "tandem/files/convert_weights.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/npz.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/pth_stored.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors_parts.h"
#include "tandem/files/weights.h"
#include "tandem/files/zip.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

struct OnnxTypeName {
  OnnxType type;
  std::string_view name;
};
constexpr OnnxTypeName onnx_types[] = {
    {OnnxType::f32, "F32"},     {OnnxType::f64, "F64"}, {OnnxType::f16, "F16"}, {OnnxType::bf16, "BF16"},
    {OnnxType::u8, "U8"},       {OnnxType::i8, "I8"},   {OnnxType::u16, "U16"}, {OnnxType::i16, "I16"},
    {OnnxType::u32, "U32"},     {OnnxType::i32, "I32"}, {OnnxType::u64, "U64"}, {OnnxType::i64, "I64"},
    {OnnxType::boolean, "BOOL"}};

std::vector<StoredTensor> onnx_tensors(const OnnxModel& model, const std::string& name) {
  std::vector<StoredTensor> all;
  for (const OnnxTensor& constant : model.graph.constants) {
    const std::string label = one_line(constant.name);
    check(constant.external.empty(), "[convert] {}: the data of '{}' is in another file, which is not opened",
          name, label);
    const auto* const type = std::ranges::find(onnx_types, constant.type, &OnnxTypeName::type);
    check(type != std::end(onnx_types), "[convert] {}: expected numbers in '{}', got {}", name, label,
          name_of(constant.type));
    check(constant.dims.size() <= max_rank, "[convert] {}: expected at most {} sizes in '{}', got {}", name,
          max_rank, label, constant.dims.size());
    all.push_back({constant.name, type->name, Shape(std::span<const std::int64_t>(constant.dims)),
                   std::as_bytes(std::span(constant.data))});
  }
  return all;
}

// The members of a zip archive are arrays of NumPy.
bool is_npz(std::string_view bytes, const std::string& name) {
  const std::vector<ZipEntry> entries = read_zip(bytes, name);
  return !entries.empty() &&
         std::ranges::all_of(entries, [](const ZipEntry& entry) { return entry.name.ends_with(".npy"); });
}

// The tensors, and what owns their bytes.
struct Source {
  std::string format;
  std::vector<StoredTensor> tensors;
  std::shared_ptr<const void> keep_alive;
  std::string ignored;
};

Source read_source(const std::string& bytes, const std::string& name) {
  check(weight_format(bytes) == WeightFormat::pth, "[convert] {}: the file is safetensors already", name);
  if (is_onnx(bytes)) {
    const auto model = std::make_shared<const OnnxModel>(parse_onnx(bytes, name));
    return {"ONNX", onnx_tensors(*model, name), model, {}};
  }
  if (is_zip(bytes) && is_npz(bytes, name)) {
    const auto arrays = std::make_shared<const std::vector<NpyArray>>(read_npz(bytes, name));
    Source source{"npz", {}, arrays, {}};
    for (const NpyArray& array : *arrays)
      source.tensors.push_back({array.name, array.type, array.shape, std::as_bytes(std::span(array.bytes))});
    return source;
  }
  const auto file = std::make_shared<const StoredPth>(parse_pth_stored(bytes, name));
  Source source{is_zip(bytes) ? "pth zip" : "pth legacy", {}, file, file->ignored};
  for (const StoredPthTensor& tensor : file->tensors)
    source.tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.bytes});
  return source;
}

}  // namespace

ConvertReport convert_weights(const std::filesystem::path& from, const std::filesystem::path& to,
                              bool overwrite) {
  check(to.extension() == ".safetensors", "[convert] {}: expected a name that ends in .safetensors",
        to.string());
  std::error_code ignored;
  check(overwrite || !std::filesystem::exists(std::filesystem::symlink_status(to, ignored)),
        "[convert] {}: the file exists", to.string());
  Source source = read_source(read_file("convert", from, max_weight_bytes), from.string());
  check(!source.tensors.empty(), "[convert] {}: expected tensors, got none", from.string());
  ConvertReport report{
      .from = from.string(), .to = to.string(), .format = source.format, .ignored = source.ignored};
  for (const StoredTensor& tensor : source.tensors)
    report.tensors.push_back({tensor.name, std::string(tensor.type), tensor.shape});
  FileParts parts = safetensors_parts({{"format", "pt"}}, source.tensors, source.keep_alive);
  report.bytes = parts.header_size;
  for (const std::span<const std::byte> piece : parts.body) report.bytes += piece.size();
  PendingFile("convert", to, std::move(parts)).finish();
  return report;
}

std::string to_json_text(const ConvertReport& report) {
  using Json = nlohmann::ordered_json;
  Json tensors = Json::array();
  for (const ConvertedTensor& tensor : report.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())}});
  const Json json{{"from", report.from},   {"to", report.to},    {"format", report.format},
                  {"bytes", report.bytes}, {"tensors", tensors}, {"ignored", report.ignored}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
