#include "tandem/data/dataset_registry.h"

#include <gtest/gtest.h>

#include "tandem/nn/model_registry.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(DatasetRegistry, Rows_AreComplete) {
  EXPECT_EQ(datasets().list().find("digits, mnist, fashion-mnist, plates"), 0u);
  for (const DatasetRow& row : datasets().rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.summary.empty());
    EXPECT_NE(models().find(row.default_model), nullptr);
    if (!row.source) continue;
    EXPECT_EQ(row.source->name, row.name);
    EXPECT_FALSE(row.source->files.empty());
    const FetchFile& archive = row.source->archive;
    for (const FetchFile& file : row.source->files)
      EXPECT_EQ((archive.name.empty() ? file : archive).sha256.size(), 64u) << file.name;
  }
}

TEST(DatasetRegistry, RenderedSet_LoadsTheGivenNumberOfImages) {
  const DataSplit split = load_dataset("digits", {}, 30);
  EXPECT_EQ(split.name, "digits");
  EXPECT_EQ(split.train.count(), 30);
  EXPECT_EQ(split.test.count(), 10000);
}

TEST(DatasetRegistry, WrongNames_AreErrors) {
  EXPECT_EQ(error_text([] { load_dataset("imagenet"); }),
            "[data] expected one of " + datasets().list() + ", got 'imagenet'");
  EXPECT_EQ(error_text([] { load_dataset("plates"); }),
            "[data] expected a data set of one image size, got plates");
  EXPECT_EQ(fetch_source("fashion-mnist").files.size(), 4u);
  EXPECT_EQ(fetch_source("resnet18").files.size(), 1u);
  for (const char* name : {"imagenet", "digits", "plates"})
    EXPECT_EQ(error_text([&] { fetch_source(name); }),
              "[fetch] expected one of " + fetchable_names() + ", got '" + name + "'");
}

TEST(DatasetRegistry, RegisteredSet_IsLoadedByName) {
  register_dataset({.name = "two-digits",
                    .summary = "of this test",
                    .load = [](const std::filesystem::path& folder, std::int64_t train) {
                      EXPECT_TRUE(folder.empty());
                      DataSplit split = load_dataset("digits", {}, train);
                      split.name = "two-digits";
                      return split;
                    }});
  EXPECT_EQ(load_dataset("two-digits", {}, 2).train.count(), 2);
  EXPECT_EQ(fetchable_names().find("two-digits"), std::string::npos);
}

}  // namespace
}  // namespace tandem
