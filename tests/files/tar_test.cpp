#include "tandem/files/tar.h"

#include <gtest/gtest.h>

#include "tests/core/error_text.h"
#include "tests/files/archives.h"

namespace tandem {
namespace {

TEST(Tar, ListsRegularFiles) {
  const std::string archive = tar_entry("a", "first") + tar_entry("folder/", "", "", '5') +
                              tar_entry("b", std::string(1000, 'b'), "", '\0', "long/way") +
                              tar_entry("pax", "skipped", "", 'x') + tar_entry("c", "") + tar_end();
  const auto entries = read_tar(archive, "t");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].contents, "first");
  EXPECT_EQ(entries[1].name, "long/way/b");
  EXPECT_EQ(entries[1].contents, std::string(1000, 'b'));
  EXPECT_EQ(entries[2].name, "c");
  EXPECT_EQ(entries[2].contents, "");
  EXPECT_TRUE(read_tar("", "t").empty());
}

TEST(Tar, InvalidArchives_Throw) {
  EXPECT_EQ(error_text([] { read_tar("text", "t"); }), "[tar] t: the archive is truncated");
  EXPECT_EQ(error_text([] { read_tar(std::string(512, 'x'), "t"); }),
            "[tar] t: not a tar archive, or damaged");
  std::string flipped = tar_entry("a", "first");
  flipped[0] ^= 1;
  EXPECT_EQ(error_text([&] { read_tar(flipped, "t"); }), "[tar] t: not a tar archive, or damaged");
  EXPECT_EQ(error_text([] { read_tar(tar_entry("a", "first", "77777777777"), "t"); }),
            "[tar] t: 'a' has 8589934591 bytes, but the archive has only 512 left");
  EXPECT_EQ(error_text([] { read_tar(tar_entry("a", "first", "12x"), "t"); }),
            "[tar] t: the size of 'a' is not a number");
}

}  // namespace
}  // namespace tandem
