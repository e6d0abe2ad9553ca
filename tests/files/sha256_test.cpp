#include "tandem/files/sha256.h"

#include <gtest/gtest.h>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

TEST(Sha256Test, NistVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                       "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, UpdatesOfAnySize_GiveTheSameDigest) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  const std::string whole = sha256_hex(text);
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += step)
      hash.update(std::string_view(text).substr(at, step));
    ASSERT_EQ(hash.hex_digest(), whole) << step;
  }
}

TEST(Sha256Test, LargeFiles_And_Errors) {
  const TempFolder folder;
  const std::string text(700001, 'z');
  put_bytes(folder / "a", text);
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256_hex(text));
  EXPECT_EQ(error_text([&] { sha256_of_file(folder / "none"); }),
            "[sha256] " + (folder / "none").string() + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_text([&] { sha256_of_file(folder.path()); }),
            "[sha256] " + folder.path().string() + ": expected a file, got a folder");
}

}  // namespace
}  // namespace tandem
