#include "tandem/files/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tandem/files/safetensors_header.h"
#include "tandem/files/sha256.h"
#include "tandem/files/small_floats.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

std::string entry(const char* name, const char* dtype, const char* shape, int begin, int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin,
                     end);
}

// The JSON object of the entries.
std::string object(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

std::string parse_error(const std::string& header, const std::string& data) {
  const std::string text = error_text([&] { parse_safetensors(with_length(header, data), "m"); });
  EXPECT_EQ(text.rfind("[safetensors] m: ", 0), 0u) << text;
  return text.substr(std::min<std::size_t>(text.size(), 17));
}

TensorFile example() {
  return {.metadata = {{"model", "mlp"}, {"quote\"d", "line\nend ü"}},
          .tensors = {{"0.weight", Tensor::from(std::vector<float>{1, -2, 3.5f, 4, 5, 6}, {2, 3})},
                      {"steps", Tensor::from(std::vector<std::int64_t>{1LL << 40}, Shape{})},
                      {"none", Tensor::empty({0, 4}, DType::f64)},
                      {"pixels", Tensor::from(std::vector<std::uint8_t>{1, 2, 255}, {3})}}};
}

TEST(Safetensors, Write_ReadsBack) {
  const TempFolder folder;
  write_safetensors(folder / "m.safetensors", example());
  const TensorFile file = read_safetensors(folder / "m.safetensors");
  EXPECT_EQ(file.metadata, example().metadata);
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors[0].name, "0.weight");
  EXPECT_EQ(file.tensors[0].tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(file.tensors[0].tensor.to_vector<float>(), (std::vector<float>{1, -2, 3.5f, 4, 5, 6}));
  const auto find = [&](const std::string& name) {
    return std::ranges::find(file.tensors, name, &NamedTensor::name)->tensor;
  };
  EXPECT_EQ(find("steps").item<std::int64_t>(), 1LL << 40);
  EXPECT_EQ(find("steps").rank(), 0);
  EXPECT_EQ(find("none").shape(), (Shape{0, 4}));
  EXPECT_EQ(find("pixels").to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 2, 255}));
}

TEST(Safetensors, EveryDtype_ReadsBack) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i32, DType::i64}) {
    const Tensor tensor = Tensor::empty({3}, dtype);
    std::memset(tensor.bytes(), 0x3C, 3 * size_of(dtype));
    const Tensor back =
        parse_safetensors(to_safetensors({.tensors = {{"x", tensor}}}), "m").tensors[0].tensor;
    ASSERT_EQ(back.dtype(), dtype);
    EXPECT_EQ(std::memcmp(back.bytes(), tensor.bytes(), 3 * size_of(dtype)), 0);
  }
}

TEST(Safetensors, Bytes_FollowTheFormat) {
  const std::string bytes = to_safetensors(example());
  const auto header_size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) +
                           256u * static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(header_size % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  const std::string data = bytes.substr(8 + header_size);
  EXPECT_EQ(header["0.weight"],
            nlohmann::json::parse(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"));
  EXPECT_EQ(header["steps"], nlohmann::json::parse(R"({"dtype":"I64","shape":[],"data_offsets":[24,32]})"));
  EXPECT_EQ(header["none"], nlohmann::json::parse(R"({"dtype":"F64","shape":[0,4],"data_offsets":[32,32]})"));
  EXPECT_EQ(header["pixels"], nlohmann::json::parse(R"({"dtype":"U8","shape":[3],"data_offsets":[32,35]})"));
  EXPECT_EQ(header["__metadata__"]["model"], "mlp");
  EXPECT_EQ(header["__metadata__"]["tandem.sha256"], sha256_hex(data));
  EXPECT_EQ(data.substr(4, 4), std::string("\0\0\0\xC0", 4));  // -2 as f32
}

TEST(Safetensors, StridedView_IsWrittenRowMajor) {
  const Tensor matrix = Tensor::from(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  const TensorFile file = parse_safetensors(to_safetensors({.tensors = {{"t", matrix.transpose()}}}), "m");
  EXPECT_EQ(file.tensors[0].tensor.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 4, 2, 5, 3, 6}));
}

TEST(Safetensors, CudaTensors_GiveTheSameBytesAsHostTensors) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  std::vector<float> values(60'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto file_on = [&](Device device) {
    const Tensor numbers = Tensor::from(values, {100, 3, 200}, device);
    return TensorFile{.metadata = {{"model", "cnn"}},
                      .tensors = {{"permuted", numbers.permute({2, 0, 1})},
                                  {"host", Tensor::from(std::vector<std::uint8_t>{7}, {1})},
                                  {"slice", numbers.slice(0, 7, 9)},
                                  {"empty", Tensor::empty({0, 2}, DType::f32, device)},
                                  {"numbers", numbers}}};
  };
  EXPECT_TRUE(to_safetensors(file_on(cuda_device())) == to_safetensors(file_on(cpu_device)));
}

TEST(Safetensors, OtherTools_NeedNoDigestAndNoPadding) {
  const TensorFile file = parse_safetensors(
      with_length(object({entry("b", "U8", "[1]", 2, 3), entry("a", "BF16", "[1]", 0, 2)}), "\x80\x3F!"),
      "m");
  EXPECT_TRUE(file.metadata.empty());
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(float(file.tensors[0].tensor.item<BFloat16>()), 1.0f);
  EXPECT_EQ(file.tensors[1].tensor.item<std::uint8_t>(), '!');
}

TEST(Safetensors, DuplicateNames_Throw) {
  const Tensor x = Tensor::empty({1}, DType::f32);
  EXPECT_EQ(error_text([&] {
              to_safetensors({.tensors = {{"x", x}, {"x", x}}});
            }),
            "[safetensors] expected distinct tensor names, got 'x' twice");
}

TEST(Safetensors, InvalidHeaders_Throw) {
  const std::string u8 = entry("x", "U8", "[2]", 0, 2);
  EXPECT_EQ(parse_error(object({u8}).substr(0, 50), "ab"), "the header is not valid JSON");
  EXPECT_EQ(parse_error("{\"x\":3}", ""), "tensor 'x': expected dtype, shape and data_offsets");
  EXPECT_EQ(parse_error(object({u8, u8}), "ab"), "'x' is in the header twice");
  EXPECT_EQ(parse_error(object({entry("x", "C64", "[1]", 0, 8)}), "abcdefgh"),
            "tensor 'x': expected a dtype of F32, F64, BF16, U8, I32, I64, F16, F8_E4M3, F8_E5M2, BOOL, I8, "
            "I16, U16, U32, U64, got C64");
  EXPECT_EQ(parse_error(object({entry("x", "F32", "[1]", 0, 2)}), "ab"),
            "tensor 'x': shape [1] of F32 does not fill the bytes 0 to 2");
  EXPECT_EQ(parse_error(object({entry("x", "U8", "[-1]", 0, 2)}), "ab"),
            "tensor 'x': expected a size or offset, got -1");
  EXPECT_EQ(parse_error(object({entry("x", "U8", "[4294967296,4294967296]", 0, 0)}), ""),
            "tensor 'x': the product of its sizes [4294967296, 4294967296] is too large");
  EXPECT_EQ(parse_error(object({entry("x", "F64", "[2305843009213693952]", 0, 0)}), ""),
            "tensor 'x': shape [2305843009213693952] of F64 does not fill the bytes 0 to 0");
  EXPECT_EQ(parse_error(object({entry("x", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1)}), "a"),
            "tensor 'x': expected a shape of at most 8 sizes");
  EXPECT_EQ(parse_error(R"({"__metadata__":{"a":1}})", ""), "expected text as metadata 'a'");
  EXPECT_EQ(parse_error(R"({"__metadata__":[]})", ""), "expected an object as __metadata__");
  EXPECT_EQ(parse_error(R"({"__metadata__":{},"__metadata__":{}})", ""),
            "'__metadata__' is in the header twice");
  EXPECT_EQ(parse_error(R"({"__metadata__":{"a":"","a":""}})", ""), "'a' is in the header twice");
  EXPECT_EQ(parse_error(R"({"x":{"dtype":"U8","dtype":"U8"}})", ""), "'dtype' is in the header twice");
  EXPECT_EQ(parse_error(R"({"x":{"shape":[1],"data_offsets":[0,1]}})", "a"),
            "tensor 'x': expected dtype, shape and data_offsets");
  EXPECT_EQ(parse_error(R"({"x":[]})", ""), "tensor 'x': expected dtype, shape and data_offsets");
  EXPECT_EQ(parse_error(R"({"x":{"dtype":1}})", ""), "tensor 'x': expected dtype, shape and data_offsets");
  EXPECT_EQ(parse_error(R"({"x":{"shape":3}})", ""), "tensor 'x': expected a shape of at most 8 sizes");
  EXPECT_EQ(parse_error(R"({"x":{"shape":[[]]}})", ""), "tensor 'x': expected a size or offset, got a list");
  EXPECT_EQ(parse_error(R"({"x":{"shape":[1.5]}})", ""), "tensor 'x': expected a size or offset, got 1.5");
  EXPECT_EQ(parse_error(R"({"x":{"data_offsets":[0,1,2]}})", ""), "tensor 'x': expected two data_offsets");
  EXPECT_EQ(parse_error(R"({"x":{"data_offsets":[18446744073709551615]}})", ""),
            "tensor 'x': expected a size or offset, got 18446744073709551615");
  EXPECT_EQ(parse_error(R"({"x\ny":3})", ""), "tensor 'x y': expected dtype, shape and data_offsets");
  EXPECT_EQ(parse_error(R"({"x":{"a":[[[[[[[[]]]]]]]]}})", ""), "the header is nested too deeply");
}

TEST(Safetensors, UnknownFieldsOfATensor_AreIgnored) {
  const TensorFile file = parse_safetensors(
      with_length(R"({"x":{"a":[1,{"dtype":2}],"dtype":"U8","b":null,"shape":[1],"data_offsets":[0,1]}})",
                  "!"),
      "m");
  EXPECT_EQ(file.tensors[0].tensor.item<std::uint8_t>(), '!');
}

TEST(Safetensors, Limits_AreEnforced) {
  const SafetensorsLimits limits{.max_tensors = 2, .max_metadata = 2};
  const auto parse = [&](const std::string& header) {
    return parse_safetensors_header(header, 0, "m", limits).tensors.size();
  };
  const auto none = [](const char* name) { return entry(name, "U8", "[0]", 0, 0); };
  EXPECT_EQ(parse(object({none("a"), none("b")})), 2u);
  EXPECT_EQ(error_text([&] {
              parse(object({none("a"), none("b"), none("c")}));
            }),
            "[safetensors] m: expected at most 2 tensors");
  EXPECT_EQ(parse(R"({"__metadata__":{"a":"","b":""}})"), 0u);
  EXPECT_EQ(error_text([&] { parse(R"({"__metadata__":{"a":"","b":"","c":""}})"); }),
            "[safetensors] m: expected at most 2 entries of metadata");
}

// The tensor "x" with these bytes.
Tensor converted(const char* dtype, int count, const std::string& bytes) {
  const std::string header =
      object({entry("x", dtype, fmt::format("[{}]", count).c_str(), 0, static_cast<int>(bytes.size()))});
  return parse_safetensors(with_length(header, bytes), "m").tensors[0].tensor;
}

TEST(Safetensors, DtypesThatTandemLacks_AreConverted) {
  using namespace std::string_literals;
  const auto floats = [](const char* dtype, int count, const std::string& bytes) {
    return converted(dtype, count, bytes).to_vector<float>();
  };
  EXPECT_EQ(floats("F16", 4, "\0\x3C\0\xC0\x01\0\0\x7C"s),
            (std::vector<float>{1, -2, 0x1p-24f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(floats("F8_E5M2", 4, "\x3C\xC0\x01\x7C"),
            (std::vector<float>{1, -2, 0x1p-16f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(floats("F8_E4M3", 5, "\x38\xC0\x01\x7E\x08"), (std::vector<float>{1, -2, 0x1p-9f, 448, 0x1p-6f}));
  EXPECT_TRUE(std::isnan(floats("F8_E4M3", 1, "\xFF")[0]));
  EXPECT_EQ(converted("BOOL", 3, "\0\1\2"s).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_EQ(converted("I8", 2, "\x80\x7F").to_vector<std::int32_t>(), (std::vector<std::int32_t>{-128, 127}));
  EXPECT_EQ(converted("I16", 2, "\0\x80\xFF\x7F"s).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{-32768, 32767}));
  EXPECT_EQ(converted("U16", 1, "\xFF\xFF").to_vector<std::int32_t>(), (std::vector<std::int32_t>{65535}));
  EXPECT_EQ(converted("U32", 1, "\xFF\xFF\xFF\xFF").to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{4294967295}));
  EXPECT_EQ(converted("U64", 1, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F").item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(error_text([] { converted("U64", 1, "\0\0\0\0\0\0\0\x80"s); }),
            "[safetensors] m: tensor 'x': expected U64 values that fit i64");
  EXPECT_EQ(error_text([] { converted("F16", 2, "abc"); }),
            "[safetensors] m: tensor 'x': shape [2] of F16 does not fill the bytes 0 to 3");
}

// By the definition of the format: sign, exponent with a bias, fraction.
TEST(Safetensors, EveryFloat8_HasItsValue) {
  for (int bits = 0; bits < 256; ++bits) {
    const double sign = bits < 128 ? 1 : -1;
    const auto value = [&](int fraction_bits, int bias) {
      const int exponent = (bits & 0x7F) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
      const double scale = std::ldexp(sign, std::max(exponent, 1) - bias - fraction_bits);
      return scale * (fraction + (exponent > 0 ? 1 << fraction_bits : 0));
    };
    const auto byte = static_cast<std::uint8_t>(bits);
    if ((bits & 0x7F) < 0x7F) {
      EXPECT_EQ(from_float8_e4m3(byte), value(3, 7)) << bits;
    }
    if ((bits & 0x7F) < 0x7C) {
      EXPECT_EQ(from_float8_e5m2(byte), value(2, 15)) << bits;
    }
    if ((bits & 0x7F) > 0x7C) {
      EXPECT_TRUE(std::isnan(from_float8_e5m2(byte))) << bits;
    }
  }
}

TEST(Safetensors, InvalidOffsets_Throw) {
  const std::string first = entry("a", "U8", "[2]", 0, 2);
  EXPECT_EQ(parse_error(object({first}), "a"),
            "tensor 'a' ends at byte 2 of the data, which has 1: the file is truncated");
  EXPECT_EQ(parse_error(object({first, entry("b", "U8", "[2]", 1, 3)}), "abc"),
            "tensor 'b' overlaps the one before it");
  EXPECT_EQ(parse_error(object({first, entry("b", "U8", "[2]", 3, 5)}), "abcde"),
            "the data has a gap before tensor 'b'");
  EXPECT_EQ(parse_error(object({first}), "abc"), "1 bytes follow the last tensor");
  EXPECT_EQ(parse_error(object({entry("a", "U8", "[2]", 2, 0)}), "ab"),
            "tensor 'a': shape [2] of U8 does not fill the bytes 2 to 0");
}

TEST(Safetensors, OtherFormatsAndHugeHeaders_Throw) {
  EXPECT_EQ(error_text([] { parse_safetensors("short", "m"); }),
            "[safetensors] m: expected at least 8 bytes, got 5");
  EXPECT_EQ(
      error_text([] { parse_safetensors(std::string(8, '\xFF') + "{", "m"); }),
      "[safetensors] m: not a safetensors file, or truncated (a header of 18446744073709551615 bytes in a "
      "file of 9)");
}

TEST(Safetensors, FlippedBitInTheData_Throws) {
  const std::string bytes = to_safetensors(example());
  for (std::size_t i = bytes.size() - 35; i < bytes.size(); ++i) {
    std::string broken = bytes;
    broken[i] ^= 4;
    EXPECT_EQ(error_text([&] { parse_safetensors(broken, "m"); }),
              "[safetensors] m: the data does not match its SHA-256: the file is damaged");
  }
}

TEST(Safetensors, TruncatedAndDamagedFiles_AreNotReadPastTheirEnd) {
  const std::string bytes = to_safetensors(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    error_text([&] { parse_safetensors(std::string(bytes, 0, size), "m"); });
  for (std::size_t i = 0; i < bytes.size(); ++i) {  // well-formed files may be read; nothing may crash
    std::string broken = bytes;
    broken[i] ^= 1;
    try {
      parse_safetensors(broken, "m");
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace tandem
