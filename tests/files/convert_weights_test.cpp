#include "tandem/files/convert_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tandem/files/npz.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/files/pth.h"
#include "tandem/files/safetensors.h"
#include "tests/files/archives.h"
#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

const fs::path golden = fs::path(source_folder) / "tests/golden/pth";

std::string dtype_of_tensor(const ConvertReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.tensors, name, &ConvertedTensor::name);
  return found == report.tensors.end() ? "" : found->dtype;
}

class ConvertPth : public testing::TestWithParam<const char*> {};

TEST_P(ConvertPth, NamesShapesValuesAndDtypes_AreKept) {
  const TempFolder folder;
  const ConvertReport report = convert_weights(golden / GetParam(), folder / "m.safetensors");
  const TensorFile expected = read_pth(golden / GetParam()),
                   file = read_safetensors(folder / "m.safetensors");
  EXPECT_EQ(report.bytes, fs::file_size(folder / "m.safetensors"));
  ASSERT_EQ(file.tensors.size(), expected.tensors.size());
  ASSERT_EQ(report.tensors.size(), expected.tensors.size());
  for (const NamedTensor& named : expected.tensors) {
    const auto found = std::ranges::find(file.tensors, named.name, &NamedTensor::name);
    ASSERT_NE(found, file.tensors.end()) << named.name;
    EXPECT_EQ(found->tensor.shape(), named.tensor.shape()) << named.name;
    ASSERT_EQ(found->tensor.dtype(), named.tensor.dtype()) << named.name;
    const auto size = static_cast<std::size_t>(named.tensor.numel()) * size_of(named.tensor.dtype());
    EXPECT_TRUE(size == 0 || std::memcmp(found->tensor.bytes(), named.tensor.bytes(), size) == 0)
        << named.name;
  }
  EXPECT_EQ(dtype_of_tensor(report, "weight"), "F32");
  EXPECT_EQ(dtype_of_tensor(report, "half"), "F16");
  EXPECT_EQ(dtype_of_tensor(report, "bool"), "BOOL");
  EXPECT_EQ(dtype_of_tensor(report, "i8"), "I8");
  EXPECT_EQ(dtype_of_tensor(report, "i16"), "I16");
}

INSTANTIATE_TEST_SUITE_P(All, ConvertPth, testing::Values("zip.pth", "legacy.pth", "zip_protocol4.pth"));

TEST(ConvertWeights, Checkpoint_KeepsPrefixesAndTellsWhatIsLeftOut) {
  const TempFolder folder;
  const ConvertReport report = convert_weights(golden / "checkpoint.pth", folder / "m.safetensors");
  EXPECT_EQ(report.format, "pth zip");
  EXPECT_EQ(report.ignored, "epoch, best, optimizer, arch");
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.tensors[0].name, "module.weight");
  const auto json = nlohmann::json::parse(to_json_text(report));
  EXPECT_EQ(json["tensors"][0]["dtype"], "F32");
  EXPECT_EQ(json["tensors"][0]["shape"], (std::vector<int>{2, 2}));
  EXPECT_EQ(json["ignored"], report.ignored);
}

TEST(ConvertWeights, OnnxConstants_AreConverted) {
  const TempFolder folder;
  OnnxModel model;
  model.graph.constants = {{.name = "w", .type = OnnxType::f32, .dims = {1, 2}, .data = std::string(8, '\1')},
                           {.name = "h", .type = OnnxType::f16, .dims = {}, .data = "\0\x3C"s},
                           {.name = "n", .type = OnnxType::i8, .dims = {2}, .data = "\x80\x7F"}};
  put_bytes(folder / "m.onnx", to_onnx(model));
  const ConvertReport report = convert_weights(folder / "m.onnx", folder / "m.safetensors");
  EXPECT_EQ(report.format, "ONNX");
  EXPECT_EQ(dtype_of_tensor(report, "h"), "F16");
  const TensorFile file = read_safetensors(folder / "m.safetensors");
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[0].tensor.shape(), (Shape{1, 2}));
  EXPECT_EQ(file.tensors[1].tensor.item<float>(), 1.0f);
  EXPECT_EQ(file.tensors[2].tensor.to_vector<std::int32_t>(), (std::vector<std::int32_t>{-128, 127}));
}

// Bytes of a .npy file.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  const std::string padded = header + "\n";
  return "\x93NUMPY" + std::string(1, version) + "\0"s + little_endian(padded.size(), version == 1 ? 2 : 4) +
         padded + data;
}
std::string header_of(const std::string& descr, const std::string& shape,
                      const std::string& order = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr, order, shape);
}

TEST(ConvertWeights, NumPyArchive_IsConverted) {
  const TempFolder folder;
  put_bytes(
      folder / "m.npz",
      zip({{.name = "a.npy",
            .contents = npy(header_of("<f4", "2, 1"), std::string(8, '\2')),
            .deflated = true},
           {.name = "b/c.npy", .contents = npy(header_of("<i8", ""), std::string("\7\0\0\0\0\0\0\0", 8), 2)},
           {.name = "d.npy", .contents = npy(header_of("|b1", "3,", "True"), "\0\1\1"s)}}));
  const ConvertReport report = convert_weights(folder / "m.npz", folder / "m.safetensors");
  EXPECT_EQ(report.format, "npz");
  ASSERT_EQ(report.tensors.size(), 3u);
  EXPECT_EQ(report.tensors[0].name, "a");
  EXPECT_EQ(report.tensors[0].shape, (Shape{2, 1}));
  EXPECT_EQ(report.tensors[2].dtype, "BOOL");
  EXPECT_EQ(read_safetensors(folder / "m.safetensors").tensors[1].tensor.item<std::int64_t>(), 7);
}

TEST(ConvertWeights, InvalidNumPyArrays_Throw) {
  const auto error_of = [](const std::string& bytes) { return error_text([&] { parse_npy(bytes, "x"); }); };
  EXPECT_EQ(error_of("\x93NUMPY"), "[npy] x: not a NumPy array, or truncated");
  EXPECT_EQ(error_of("\x93NUMPY\1\0\xFF\xFF{}"s), "[npy] x: the file is truncated");
  EXPECT_EQ(error_of(npy("{'descr': '<f4'}", "")),
            "[npy] x: expected descr, fortran_order and shape in the header");
  EXPECT_EQ(error_of(npy(header_of("|O", "1,"), "x")),
            "[npy] x: expected an array of little-endian numbers, got '|O'");
  EXPECT_EQ(error_of(npy(header_of(">f4", "1,"), "abcd")),
            "[npy] x: expected an array of little-endian numbers, got '>f4'");
  EXPECT_EQ(error_of(npy(header_of("<f4", "2, 2", "True"), std::string(16, 'x'))),
            "[npy] x: expected rows one after the other, got Fortran's order");
  EXPECT_EQ(error_of(npy(header_of("<f4", "2, -2"), "")),
            "[npy] x: expected a shape of at most 8 sizes, got '2, -2'");
  EXPECT_EQ(error_of(npy(header_of("<f4", "1,1,1,1,1,1,1,1,1"), "abcd")),
            "[npy] x: expected a shape of at most 8 sizes, got '1,1,1,1,1,1,1,1,1'");
  EXPECT_EQ(error_of(npy(header_of("<f8", "2305843009213693952,"), "")),
            "[npy] x: shape [2305843009213693952] of F64 does not fill 0 bytes");
  EXPECT_EQ(error_of(npy(header_of("<f8", "4294967296, 4294967296"), "")),
            "[npy] x: the product of its sizes [4294967296, 4294967296] is too large");
  EXPECT_EQ(error_of(npy(header_of("<f4", "2,"), "abcd")), "[npy] x: shape [2] of F32 does not fill 4 bytes");
}

TEST(ConvertWeights, BadInput_ThrowsAndWritesNothing) {
  const TempFolder folder;
  const std::string out = (folder / "m.safetensors").string();
  const auto error_of = [&](const fs::path& from, const std::string& to) {
    return error_text([&] { convert_weights(from, to); });
  };
  EXPECT_EQ(error_of(golden / "zip.pth", (folder / "m.pth").string()),
            "[convert] " + (folder / "m.pth").string() + ": expected a name that ends in .safetensors");
  EXPECT_EQ(error_of(folder / "none.pth", out),
            "[convert] " + (folder / "none.pth").string() + ": no such file");
  EXPECT_NE(
      error_of(golden / "evil_reduce.pkl", out).find("a pickle that calls os.system; nothing was executed"),
      std::string::npos);
  EXPECT_NE(
      error_of(golden / "no_tensors.pth", out).find("expected a state dict, got a pickle without tensors"),
      std::string::npos);
  put_bytes(folder / "text", "# Tandem\n");
  EXPECT_NE(error_of(folder / "text", out).find("expected a safetensors or PyTorch file, got neither"),
            std::string::npos);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ConvertWeights, ExistingFile_IsKeptUnlessAsked) {
  const TempFolder folder;
  const fs::path out = folder / "m.safetensors";
  put_bytes(out, "precious");
  EXPECT_EQ(error_text([&] { convert_weights(golden / "zip.pth", out); }),
            "[convert] " + out.string() + ": the file exists");
  EXPECT_EQ(get_bytes(out), "precious");
  EXPECT_THROW(convert_weights(golden / "evil_reduce.pkl", out, true), Error);
  EXPECT_EQ(get_bytes(out), "precious");
  convert_weights(golden / "zip.pth", out, true);
  EXPECT_EQ(read_safetensors(out).tensors.size(), 16u);
  EXPECT_EQ(error_text([&] { convert_weights(out, folder / "n.safetensors"); }),
            "[convert] " + out.string() + ": the file is safetensors already");
}

}  // namespace
}  // namespace tandem
