#include "tandem/files/shipped_weights.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(ShippedWeights, Folders_AreThePrefixAndTheSourceCode) {
  unsetenv("TANDEM_WEIGHTS");
  const std::vector<fs::path> folders = shipped_weights_folders();
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0],
            fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/tandem/weights");
  EXPECT_EQ(folders[1], fs::path(source_folder) / "weights");
}

TEST(ShippedWeights, Variable_NamesTheOnlyFolder) {
  const TempFolder folder;
  setenv("TANDEM_WEIGHTS", folder.path().c_str(), 1);
  const std::string missing = error_text([] { find_shipped_weights("resnet18"); });
  put_bytes(folder / "resnet18-scenes.safetensors", "any");
  const fs::path found = find_shipped_weights("resnet18");
  unsetenv("TANDEM_WEIGHTS");
  EXPECT_EQ(found, folder / "resnet18-scenes.safetensors");
  EXPECT_EQ(missing, "[weights] expected resnet18-scenes.safetensors, which ships with Tandem, in " +
                         folder.path().string() + ", found none");
}

TEST(ShippedWeights, OtherModel_IsAnError) {
  EXPECT_EQ(error_text([] { find_shipped_weights("resnet34"); }),
            "[weights] expected a model whose weights ship with Tandem (resnet18), got resnet34");
}

}  // namespace
}  // namespace tandem
