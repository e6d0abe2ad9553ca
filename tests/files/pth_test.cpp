// Files written by PyTorch and by hand (tests/golden/make_pth.py).
#include "tandem/files/pth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tandem/files/weights.h"
#include "tandem/files/zip.h"
#include "tests/files/archives.h"
#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const fs::path golden = fs::path(source_folder) / "tests/golden/pth";

TensorFile parse_golden(const std::string& name) {
  return parse_weights(get_bytes(golden / name), "m.pt");
}

const Tensor& tensor(const TensorFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.tensors, name, &NamedTensor::name);
  if (found == file.tensors.end()) throw std::out_of_range(name);
  return found->tensor;
}

template <class T>
void expect_tensor(const TensorFile& file, const std::string& name, const Shape& shape,
                   const std::vector<T>& values) {
  const Tensor& found = tensor(file, name);
  ASSERT_EQ(found.dtype(), dtype_of<T>) << name;
  EXPECT_EQ(found.shape(), shape) << name;
  EXPECT_TRUE(found.is_contiguous());
  EXPECT_EQ(found.to_vector<T>(), values) << name;
}

class PthFormats : public testing::TestWithParam<const char*> {};

TEST_P(PthFormats, EveryDtypeAndView) {
  const TensorFile file = parse_golden(GetParam());
  ASSERT_EQ(file.tensors.size(), 16u);
  EXPECT_EQ(file.tensors.front().name, "weight");
  EXPECT_EQ(file.tensors.back().name, "parameter");
  std::vector<float> eighths(24), transposed(24);
  for (std::size_t i = 0; i < 24; ++i) {
    eighths[i] = static_cast<float>(i) / 8;
    transposed[i] = static_cast<float>(i % 4 * 6 + i / 4);
  }
  expect_tensor<float>(file, "weight", {4, 6}, eighths);
  expect_tensor<float>(file, "transposed", {6, 4}, transposed);
  expect_tensor<float>(file, "window", {2, 2}, {16, 18, 20, 22});
  expect_tensor<float>(file, "expanded", {3, 2}, {1.5f, -2, 1.5f, -2, 1.5f, -2});
  expect_tensor<float>(file, "scalar", {}, {-7.25f});
  expect_tensor<float>(file, "empty", {0, 5}, {});
  expect_tensor<double>(file, "double", {2}, {1e300, -0.1});
  expect_tensor<float>(file, "half", {5},
                       {1, -2.5f, 0x1p-24f, 65504, std::numeric_limits<float>::infinity()});
  ASSERT_EQ(tensor(file, "bf16").dtype(), DType::bf16);
  EXPECT_EQ(float(tensor(file, "bf16").to_vector<BFloat16>()[1]), -0.5f);
  expect_tensor<std::uint8_t>(file, "u8", {2}, {0, 255});
  expect_tensor<std::int32_t>(file, "i8", {2}, {-128, 127});
  expect_tensor<std::int32_t>(file, "i16", {2}, {-32768, 5});
  expect_tensor<std::int32_t>(file, "i32", {2}, {std::numeric_limits<std::int32_t>::min(), 7});
  expect_tensor<std::int64_t>(file, "i64", {2}, {std::int64_t{1} << 40, -1});
  expect_tensor<std::uint8_t>(file, "bool", {2, 1}, {1, 0});
  expect_tensor<float>(file, "parameter", {1, 2}, {0.25f, 0.5f});
  EXPECT_EQ(file.metadata.at("format"),
            std::string(GetParam()).starts_with("zip") ? "pth zip" : "pth legacy");
  EXPECT_FALSE(file.metadata.contains("ignored"));
  for (const PthName& name : pth_names(get_bytes(golden / GetParam()), "m.pt"))
    EXPECT_TRUE(name.understood) << name.name;
}

INSTANTIATE_TEST_SUITE_P(All, PthFormats,
                         testing::Values("zip.pth", "legacy.pth", "zip_protocol3.pth", "zip_protocol4.pth",
                                         "zip_protocol5.pth", "legacy_protocol1.pth"));

TEST(Pth, Checkpoint_StateDictIsFound) {
  const TensorFile file = parse_golden("checkpoint.pth");
  ASSERT_EQ(file.tensors.size(), 2u);
  expect_tensor<float>(file, "weight", {2, 2}, {1, 2, 3, 4});  // without "module."
  expect_tensor<float>(file, "bias", {2}, {5, 6});
  EXPECT_EQ(file.metadata.at("ignored"), "epoch, best, optimizer, arch");
}

TEST(Pth, FilesWithoutStateDict_Throw) {
  EXPECT_EQ(error_text([] { parse_golden("no_tensors.pth"); }),
            "[pth] m.pt: expected a state dict, got a pickle without tensors");
  EXPECT_EQ(error_text([] { parse_golden("list.pth"); }),
            "[pth] m.pt: expected a state dict (a dictionary of tensors), got another object");
  EXPECT_EQ(error_text([] { parse_golden("complex.pth"); }),
            "[pth] m.pt: expected a storage of a supported dtype, got torch.ComplexFloatStorage");
  EXPECT_EQ(error_text([] { parse_weights("", "m.pt"); }), "[pth] m.pt: the file is empty");
  EXPECT_EQ(error_text([] { parse_weights("K\x01.", "m.pt"); }),
            "[pth] m.pt: expected a file of torch.save, got another pickle");
  EXPECT_EQ(error_text([] { parse_weights(zip({{.name = "x", .contents = "1"}}), "m.pt"); }),
            "[pth] m.pt: expected an archive of torch.save, got a zip archive without data.pkl");
  EXPECT_EQ(error_text(
                [] { parse_weights(zip({{.name = "a/data.pkl", .contents = "}.cos\nsystem\n."}}), "m.pt"); }),
            "[pth] m.pt: expected one pickle in data.pkl, got 12 bytes after it");
  EXPECT_EQ(error_text([] {
              parse_weights(zip({{.name = "a/data.pkl", .contents = "}."},
                                 {.name = "a/constants.pkl", .contents = ")."}}),
                            "m.pt");
            }),
            "[pth] m.pt: expected weights (torch.save of a state dict), got a TorchScript program");
  EXPECT_EQ(error_text([] {
              parse_weights(
                  zip({{.name = "a/data.pkl", .contents = "}."}, {.name = "a/byteorder", .contents = "big"}}),
                  "m.pt");
            }),
            "[pth] m.pt: expected little-endian numbers, got a file written on a big-endian machine");
}

TEST(Pth, Calls_AreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"evil_reduce.pkl", "os.system"},
      {"evil_protocol0.pkl", "os.system"},
      {"evil_inst.pkl", "os.system"},
      {"evil_obj.pkl", "os.system"},
      {"evil_newobj.pkl", "os.system"},
      {"evil_newobj_ex.pkl", "os.system"},
      {"evil_build.pkl", "os.system.__setstate__"},
      {"evil_stack_global.pkl", "os.system"},
      {"evil_memo.pkl", "os.system"},
      {"evil_eval.pkl", "builtins.eval"},
      {"evil_getattr.pkl", "builtins.getattr, the result of builtins.getattr"},
      {"evil_append.pkl", "evil.List, evil.List.append"},
      {"evil_extension.pkl", "copyreg.extension_7"},
      {"evil_whole_model.pkl", "torch.nn.modules.linear.Linear, torch.nn.modules.linear.Linear.__setstate__"},
      {"evil_nested.pth", "os.system"}};
  for (const auto& [file, names] : cases)
    EXPECT_EQ(error_text([&] { parse_golden(file); }),
              std::string("[pth] m.pt: expected weights only, got a pickle that calls ") + names +
                  "; nothing was executed")
        << file;
}

TEST(Pth, PthNames_ListsRefusedNames) {
  const std::vector<PthName> names = pth_names(get_bytes(golden / "evil_getattr.pkl"), "m.pt");
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].name, "builtins.getattr");
  EXPECT_TRUE(names[0].called);
  EXPECT_EQ(names[1].name, "os.system");
  EXPECT_FALSE(names[1].called);
  EXPECT_FALSE(names[1].understood);
}

// A tensor "t" over a storage of four floats; `geometry` is offset, size and stride in opcodes.
std::string with_view(const std::string& geometry, const std::string& numel = "K\x04",
                      const std::string& storage = std::string(16, '\0')) {
  const std::string pickle =
      "}U\x01tctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpu" +
      numel + "tQ" + geometry + "\x89}tRs.";
  return zip({{.name = "a/data.pkl", .contents = pickle}, {.name = "a/data/0", .contents = storage}});
}

TEST(Pth, ViewsBeyondTheirStorage_Throw) {
  const auto error_of = [](const std::string& bytes) {
    return error_text([&] { parse_weights(bytes, "m.pt"); });
  };
  EXPECT_EQ(parse_weights(with_view(std::string("K\0K\x02K\x02\x86K\x02K\x01\x86", 12)), "m").tensors.size(),
            1u);
  EXPECT_EQ(error_of(with_view("K\x01K\x02K\x02\x86K\x02K\x01\x86")),
            "[pth] m.pt: tensor 't' of size [2, 2], stride [2, 1] and offset 1 exceeds its storage of 4");
  EXPECT_EQ(error_of(with_view("K\x04K\x01\x85K\x01\x85")),
            "[pth] m.pt: tensor 't' of size [1], stride [1] and offset 4 exceeds its storage of 4");
  const std::string huge = "\x8a\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F";
  EXPECT_NE(error_of(with_view("K\x01K\x03\x85" + huge + "\x85")).find("exceeds its storage"),
            std::string::npos);
  EXPECT_NE(error_of(with_view(huge + "K\x03\x85K\x01\x85")).find("exceeds its storage"), std::string::npos);
  EXPECT_EQ(error_of(with_view("K\x01" + huge + huge + "\x86K\x01K\x01\x86")),
            "[pth] m.pt: tensor 't': the product of its sizes [9223372036854775807, 9223372036854775807] is "
            "too large");
  EXPECT_EQ(error_of(with_view("K\x01\x8a\x01\xFF\x85K\x01\x85")), "[pth] m.pt: damaged: size");
  // Expanded beyond the budget for a file of this size.
  EXPECT_EQ(error_of(with_view("K\x01" + huge + "\x85" + std::string("K\0\x85", 3))),
            "[pth] m.pt: tensor 't' of shape [9223372036854775807] makes the tensors too large in total "
            "for a file of this size");
  EXPECT_EQ(error_of(with_view("K\x01K\x01\x85K\x01\x85", "K\x05")),
            "[pth] m.pt: tensor 't': expected a storage of 20 bytes, got 16");
}

TEST(Pth, CheckFinite_NamesTheFirstNaN) {
  check_finite(parse_golden("checkpoint.pth"), "m.pt");
  EXPECT_EQ(error_text([] { check_finite(parse_golden("nan.pth"), "m.pt"); }),
            "[weights] m.pt: expected finite weights, got nan at element 1 of tensor 'broken'");
}

TEST(Pth, ReadWeights_DetectsTheFormatByContent) {
  const TempFolder folder;
  const TensorFile file = read_pth(golden / "checkpoint.pth");
  write_safetensors(folder / "x.pth", file);
  fs::copy_file(golden / "checkpoint.pth", folder / "y.safetensors");
  EXPECT_EQ(read_weights(folder / "x.pth").tensors.size(), 2u);
  EXPECT_EQ(read_weights(folder / "y.safetensors").tensors.size(), 2u);
  EXPECT_EQ(error_text([&] { read_weights(folder / "none"); }),
            "[weights] " + (folder / "none").string() + ": no such file");
}

TEST(Pth, DamagedFiles_GiveAnErrorOrTensors) {
  std::vector<std::string> originals;
  for (const auto& entry : fs::directory_iterator(golden)) originals.push_back(get_bytes(entry.path()));
  std::ranges::sort(originals);
  std::mt19937 random(5);  // NOLINT: the same damage every time
  int read = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = originals[random() % originals.size()];
    for (std::uint64_t flips = random() % 4; flips-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    if (random() % 8 == 0) {
      const std::string& other = originals[random() % originals.size()];
      bytes += other.substr(random() % other.size());
    }
    try {
      parse_weights(bytes, "m.pt");
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 500);
}

// Damages the pickle before it is archived, because flipped bytes rarely pass the CRC of an archive.
TEST(Pth, DamagedPickles_WithCorrectCrc_GiveAnErrorOrTensors) {
  const std::string archive = get_bytes(golden / "zip.pth");
  std::vector<ZippedFile> files;
  for (const ZipEntry& entry : read_zip(archive, "zip.pth"))
    files.push_back({.name = entry.name, .contents = std::string(entry.packed)});
  const std::string pickle = files[0].contents;
  ASSERT_TRUE(files[0].name.ends_with("data.pkl"));
  std::mt19937 random(6);  // NOLINT
  for (int i = 0; i < 2000; ++i) {
    std::string broken = pickle;
    for (std::uint64_t flips = 1 + random() % 3; flips-- > 0;)
      broken[random() % broken.size()] = static_cast<char>(random());
    files[0].contents = broken;
    try {
      parse_weights(zip(files), "m.pt");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tandem
