#include "tandem/files/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tandem/files/sha256.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

TensorFile example(float value) {
  return {.metadata = {{"epoch", "3"}},
          .tensors = {{"0.weight", Tensor::from(std::vector<float>{value, 2, 3}, {3})}}};
}

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() { write_checkpoint(path_, example(1)); }

  // The error for these bytes, without its prefix.
  static std::string error_of(const std::string& bytes) {
    const std::string text = error_text([&] { parse_checkpoint(bytes, "c"); });
    EXPECT_EQ(text.rfind("[checkpoint] c: ", 0), 0u) << text;
    return text.substr(std::min<std::size_t>(16, text.size()));
  }

  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "last.ckpt";
};

TEST_F(Checkpoint, Write_ReplacesTheFileAndReadsBack) {
  write_checkpoint(path_, example(7));
  const TensorFile file = read_checkpoint(path_);
  EXPECT_EQ(file.metadata, example(7).metadata);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].tensor.to_vector<float>(), (std::vector<float>{7, 2, 3}));
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(Checkpoint, Newest_IsThePreviousIfTheLastIsDamaged) {
  const std::filesystem::path previous = folder_ / "previous.ckpt";
  const auto first_value = [](const std::optional<NewestCheckpoint>& found) {
    return found->file.tensors[0].tensor.to_vector<float>()[0];
  };
  start_checkpoint_file(path_, example(2)).finish(previous);
  EXPECT_EQ(first_value(read_newest_checkpoint(path_, previous)), 2);
  EXPECT_EQ(read_newest_checkpoint(path_, previous)->problem, "");
  put_bytes(path_, get_bytes(path_).substr(0, 120));
  EXPECT_EQ(first_value(read_newest_checkpoint(path_, previous)), 1);
  const std::string damaged = error_text([&] { read_checkpoint(path_); });
  EXPECT_EQ(read_newest_checkpoint(path_, previous)->problem, damaged);
  put_bytes(previous, "also damaged");
  EXPECT_EQ(error_text([&] { read_newest_checkpoint(path_, previous); }), damaged);
  std::filesystem::remove(previous);
  EXPECT_EQ(error_text([&] { read_newest_checkpoint(path_, previous); }), damaged);
  write_checkpoint(previous, example(3));
  std::filesystem::remove(path_);
  EXPECT_EQ(first_value(read_newest_checkpoint(path_, previous)), 3);
  EXPECT_NE(read_newest_checkpoint(path_, previous)->problem, "");
  std::filesystem::remove(previous);
  EXPECT_FALSE(read_newest_checkpoint(path_, previous));
}

// Large enough to be written while it is hashed, from tensors with other strides.
TEST_F(Checkpoint, LargeFile_HasTheBytesOfItsSafetensors) {
  std::vector<float> values(600'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor numbers = Tensor::from(values, {100, 3, 2000});
  const TensorFile file{.metadata = {{"epoch", "3"}},
                        .tensors = {{"permuted", numbers.permute({0, 2, 1})},
                                    {"empty", Tensor::empty({0}, DType::f32)},
                                    {"byte", Tensor::from(std::vector<std::uint8_t>{7}, {1})},
                                    {"numbers", numbers}}};
  PendingFile pending = start_checkpoint_file(path_, file);
  EXPECT_EQ(read_checkpoint(path_).metadata, example(1).metadata);
  pending.finish();
  const TensorFile read = read_checkpoint(path_);
  ASSERT_EQ(read.tensors.size(), 4u);
  EXPECT_EQ(read.tensors[0].tensor.to_vector<float>(), numbers.permute({0, 2, 1}).to_vector<float>());
  EXPECT_EQ(read.tensors[3].tensor.to_vector<float>(), values);
  EXPECT_TRUE(get_bytes(path_).substr(104) == to_safetensors(file));
  write_safetensors(folder_ / "m.safetensors", file);
  EXPECT_TRUE(get_bytes(folder_ / "m.safetensors") == to_safetensors(file));
  EXPECT_EQ(folder_.count(), 2u);
  std::string error;
  with_full_disk(2 << 20, [&] { error = error_text([&] { write_checkpoint(path_, file); }); });
  EXPECT_EQ(error, "[checkpoint] cannot write " + path_.string() + ": File too large");
  EXPECT_EQ(read_checkpoint(path_).tensors.size(), 4u);
  EXPECT_EQ(folder_.count(), 2u);
}

TEST_F(Checkpoint, FlippedBit_Throws) {
  const std::string bytes = get_bytes(path_);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int bit : {0, 5, 7}) {
      std::string broken = bytes;
      broken[i] = static_cast<char>(broken[i] ^ 1 << bit);
      const std::string error = error_of(broken);
      if (i < 16) {
        EXPECT_EQ(error, "not a Tandem checkpoint");
      } else if (i >= 40) {
        EXPECT_EQ(error, "the content does not match its SHA-256: the file is damaged");
      }
    }
}

TEST_F(Checkpoint, TruncatedFile_Throws) {
  const std::string bytes = get_bytes(path_);
  for (std::size_t size = 1; size < bytes.size(); ++size)
    EXPECT_NE(error_of(bytes.substr(0, size)).find("truncated"), std::string::npos) << size;
  EXPECT_EQ(error_of(bytes.substr(0, 50)), "the file is truncated: expected at least 104 bytes, got 50");
  EXPECT_EQ(error_of(bytes.substr(0, bytes.size() - 1)),
            "the file is truncated or damaged: expected " + std::to_string(bytes.size() - 104) +
                " bytes after the first 104, got " + std::to_string(bytes.size() - 105));
  EXPECT_NE(error_of(bytes + "x").find("truncated or damaged"), std::string::npos);
}

TEST_F(Checkpoint, OtherFormats_Throw) {
  EXPECT_EQ(error_of(""), "the file is empty");
  EXPECT_EQ(error_of(to_safetensors(example(1))), "not a Tandem checkpoint");
  std::string newer = get_bytes(path_);
  newer[23] = '2';
  EXPECT_EQ(error_of(newer), "expected version 00000001, got 00000002");
  std::filesystem::remove(path_);
  EXPECT_EQ(error_text([&] { read_checkpoint(path_); }), "[checkpoint] " + path_.string() + ": no such file");
  EXPECT_EQ(error_text([&] { read_checkpoint(folder_.path()); }),
            "[checkpoint] " + folder_.path().string() + ": expected a file, got a folder");
}

// Sparse: each has no more bytes on the disk than the example.
TEST_F(Checkpoint, HugeFile_IsRefusedBeforeMemoryIsTaken) {
  constexpr std::uintmax_t huge = 20'000'000'000, large = 9'000'000'000;
  const auto error_for = [&](const std::string& begin, std::uintmax_t size) {
    put_bytes(path_, begin);
    std::filesystem::resize_file(path_, size);
    std::string text;
    with_memory_limit(std::uint64_t{1} << 30, [&] { text = error_text([&] { read_checkpoint(path_); }); });
    return text;
  };
  const std::string at = "[checkpoint] " + path_.string() + ": ", whole = get_bytes(path_);
  EXPECT_EQ(error_for(whole, huge), at + "expected at most 10737418240 bytes, got 20000000000");
  EXPECT_EQ(error_for("", large), at + "not a Tandem checkpoint");
  EXPECT_EQ(error_for(whole, large), at + "the file is truncated or damaged: expected " +
                                         std::to_string(whole.size() - 104) +
                                         " bytes after the first 104, got 8999999896");
  std::string promising = whole;  // a length of 16 EB, in a file of a few bytes
  promising.replace(24, 16, "ffffffffffffffff");
  EXPECT_EQ(
      error_for(promising, whole.size()),
      at + "the file is truncated or damaged: expected 18446744073709551615 bytes after the first 104, got " +
          std::to_string(whole.size() - 104));
  promising.replace(24, 16, "0x00000000000000");
  EXPECT_EQ(error_for(promising, whole.size()), at + "the file is damaged: its length is not a number");
}

// Inside a frame that is right.
TEST_F(Checkpoint, HugeSafetensorsHeader_Throws) {
  const auto error_for = [](std::uint64_t header_size) {
    std::string payload(8, '\0');
    std::memcpy(payload.data(), &header_size, 8);
    payload += R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    return error_text([&] {
      parse_checkpoint(
          fmt::format("TandemCheckpoint00000001{:016x}{}{}", payload.size(), sha256_hex(payload), payload),
          "c");
    });
  };
  for (const std::uint64_t size : {std::uint64_t{1} << 33, ~std::uint64_t{0}, std::uint64_t{200'000'000}})
    EXPECT_EQ(error_for(size).rfind("[safetensors] c: ", 0), 0u) << error_for(size);
}

TEST_F(Checkpoint, FullDisk_KeepsTheOldFile) {
  std::string error;
  with_full_disk(200, [&] { error = error_text([&] { write_checkpoint(path_, example(9)); }); });
  EXPECT_EQ(error, "[checkpoint] cannot write " + path_.string() + ": File too large");
  EXPECT_EQ(read_checkpoint(path_).tensors[0].tensor.to_vector<float>()[0], 1);
  EXPECT_EQ(folder_.count(), 1u);
}

}  // namespace
}  // namespace tandem
