#include "tandem/files/packed_set.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tandem/files/crc32c.h"
#include "tests/files/packed_sets.h"

namespace tandem {
namespace {

using Files = std::map<std::string, std::string>;

const Files some{{"train/cat/1.jpg", "one"},   {"train/cat-2/1.jpg", std::string(100, 'x')},
                 {"train/cat0/1.jpg", "zero"}, {"train/dog/deep/1.jpg", ""},
                 {"val/cat/2.jpg", "two"},     {"top.png", "three"}};

constexpr std::size_t crc_at = 12, file_bytes_at = 16, index_at = 24, count_at = 32, names_at = 40,
                      options_at = 48, index_crc_at = 56;

std::uint64_t number(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

// With right checksums of the index and the header.
std::string repaired(std::string bytes) {
  const std::uint64_t index = number(bytes, index_at);
  if (index <= bytes.size()) put(bytes, index_crc_at, crc32c(std::string_view(bytes).substr(index)));
  put(bytes, crc_at, std::uint32_t{0});
  put(bytes, crc_at, crc32c(std::string_view(bytes).substr(0, 64)));
  return bytes;
}

std::string error_of(const std::string& bytes) {
  return error_text([&] { PackedIndex(bytes, "set"); });
}

TEST(PackedSet, Written_IsReadAsTheSame) {
  const std::string bytes = packed_bytes(some, R"({"store":"original"})");
  const PackedIndex index(bytes, "set");
  Files read;
  for (std::int64_t i = 0; i < index.count(); ++i) {
    read[std::string(index.name(i))] = index.bytes(i);
    EXPECT_TRUE(index.is_intact(i));
    EXPECT_EQ(index.find(index.name(i)), i);
    EXPECT_EQ((index.bytes(i).data() - bytes.data()) % 64, 0);
  }
  EXPECT_EQ(read, some);
  EXPECT_EQ(index.options(), R"({"store":"original"})");
  for (const char* const missing : {"", "train", "train/cat", "train/cat/", "train/cat/1.jpgx", "zzz"})
    EXPECT_FALSE(index.find(missing).has_value()) << missing;
}

TEST(PackedSet, Folders_AreThoseOfTheNames) {
  const std::string bytes = packed_bytes(some);
  const PackedIndex index(bytes, "set");
  for (const char* const folder :
       {"", "train", "train/cat", "train/cat-2", "train/dog", "train/dog/deep", "val"})
    EXPECT_TRUE(index.has_folder(folder)) << folder;
  for (const char* const folder : {"tra", "train/c", "top.png", "train/cat/1.jpg", "x"})
    EXPECT_FALSE(index.has_folder(folder)) << folder;
  using Names = std::vector<std::string>;
  EXPECT_EQ(index.names_in("").folders, (Names{"train", "val"}));
  EXPECT_EQ(index.names_in("").files, Names{"top.png"});
  EXPECT_EQ(index.names_in("train").folders,
            (Names{"cat-2", "cat", "cat0", "dog"}));  // '-' is before '/', '0' behind it
  EXPECT_EQ(index.names_in("train/cat").files, Names{"1.jpg"});
  EXPECT_EQ(index.names_in("train/dog").folders, Names{"deep"});
  EXPECT_EQ(index.names_in("none").files, Names{});
}

TEST(PackedSet, EveryTruncationAndChangedBit_IsRejectedOrKnownToBeDamaged) {
  const std::string bytes = packed_bytes({{"a", "12345"}, {"b", "67"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) error_of(bytes.substr(0, size));
  error_of(bytes + '\0');
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ 1 << i % 8);
    try {
      const PackedIndex index(changed, "set");
      const std::size_t byte = i / 8;
      const bool is_padding = (byte >= 69 && byte < 128);
      EXPECT_EQ(index.is_intact(0) && index.is_intact(1), is_padding) << byte;
    } catch (const Error&) {
      EXPECT_TRUE(i / 8 < 64 || i / 8 >= 130) << i / 8;
    }
  }
}

TEST(PackedSet, FalseClaims_AreRejected) {
  const std::string bytes = packed_bytes({{"a", "12345"}, {"b", "67"}});
  const std::size_t index = number(bytes, index_at);
  ASSERT_EQ(index, 130u);
  const auto changed = [&](std::size_t at, auto value) {
    std::string other = bytes;
    put(other, at, value);
    return error_of(repaired(other));
  };
  EXPECT_EQ(error_of("TANDEMPK"), "[packed] set: truncated: expected 64 bytes or more, got 8");
  EXPECT_EQ(error_of("PK"), "[packed] set: expected a set written by tandem pack, got something else");
  EXPECT_EQ(changed(8, std::uint32_t{2}), "[packed] set: expected version 1, got 2");
  EXPECT_EQ(changed(file_bytes_at, std::uint64_t{999}),
            "[packed] set: expected 999 bytes, as the header says, got 182");
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const std::size_t at : {index_at, count_at, names_at, options_at})
    for (const std::uint64_t value :
         {huge, huge / 24, huge / 24 + 1, std::uint64_t{1} << 32, std::uint64_t{0}}) {
      if (at == options_at && value == 0) continue;  // checked with the exact size below
      EXPECT_NE(changed(at, value).find("[packed] set: expected an index at the end"), std::string::npos);
    }
  EXPECT_NE(changed(options_at, std::uint64_t{0}).find("an index at the end"), std::string::npos);
  // entries: offset, bytes, crc, name_end
  EXPECT_EQ(changed(index + 24, std::uint64_t{64}),
            "[packed] set: expected file 1 at byte 128, got 2 bytes at 64");  // overlaps the first
  EXPECT_EQ(changed(index + 24 + 8, std::uint64_t{3}),
            "[packed] set: expected file 1 at byte 128, got 3 bytes at 128");  // reaches into the index
  EXPECT_EQ(changed(index + 8, huge),
            "[packed] set: expected file 0 at byte 64, got 18446744073709551615 bytes at 64");
  EXPECT_EQ(changed(index + 24 + 8, std::uint64_t{1}),
            "[packed] set: expected the index after the last file, at byte 129, got it at 130");
  EXPECT_EQ(changed(index + 20, std::uint32_t{0}),
            "[packed] set: expected a name of file 0, got one from byte 0 to 0 of 2");
  EXPECT_EQ(changed(index + 24 + 20, std::uint32_t{3}),
            "[packed] set: expected a name of file 1, got one from byte 1 to 3 of 2");
  for (const char* const names : {"ba", "aa", "a/", "/a", "a."})
    EXPECT_NE(changed(index + 48, std::uint16_t(names[0] | names[1] << 8))
                  .find("expected sorted paths below a folder, got '"),
              std::string::npos)
        << names;
}

TEST(PackedSet, BadNames_AreNotWritten) {
  const TempFolder folder;
  for (const std::string& name : {std::string(), std::string("/a"), std::string("a//b"), std::string("../a"),
                                  std::string("a/./b"), std::string(5000, 'a'), std::string("a\0b", 3)}) {
    PackedWriter writer("test", folder / "set.tandem");
    EXPECT_NE(error_text([&] { writer.add(name, ""); }).find("[test] expected a path"), std::string::npos);
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(PackedSet, FullDisk_LeavesNothing) {
  const TempFolder folder;
  std::string error;
  with_full_disk(1000, [&] {
    error = error_text([&] { write_packed(folder / "set.tandem", {{"a", std::string(5000, 'a')}}); });
  });
  EXPECT_EQ(error, "[test] cannot write " + (folder / "set.tandem").string() + ": File too large");
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace tandem
