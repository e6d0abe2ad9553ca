#include "tandem/core/registry.h"
#include "tests/core/error_text.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

struct Row {
  std::string name;
  std::string summary;
};

TEST(Registry, Get_KnownName_ReturnsItsRow) {
  Registry<Row> registry("animal");
  registry.add({"cat", "meows"});
  const Row* const first = registry.find("cat");
  for (int i = 0; i < 100; ++i) registry.add({"dog" + std::to_string(i), "barks"});
  EXPECT_EQ(&registry.get("cat"), first);  // rows do not move
  EXPECT_EQ(registry.get("dog7").summary, "barks");
}

TEST(Registry, Get_UnknownName_ErrorListsTheNamesInOrder) {
  Registry<Row> registry("animal");
  registry.add({"dog", ""});
  registry.add({"cat", ""});
  EXPECT_EQ(registry.find("cow"), nullptr);
  EXPECT_EQ(error_text([&] { registry.get("cow"); }), "[animal] expected one of dog, cat, got 'cow'");
  EXPECT_EQ(error_text([&] { registry.get("cta"); }),
            "[animal] expected one of dog, cat, got 'cta'; did you mean 'cat'?");
}

TEST(Registry, Add_EmptyOrTakenName_IsAnError) {
  Registry<Row> registry("animal");
  registry.add({"dog", ""});
  EXPECT_EQ(error_text([&] { registry.add({"", ""}); }), "[animal] expected a name, got ''");
  EXPECT_EQ(error_text([&] {
              registry.add({"dog", ""});
            }),
            "[animal] expected a new name, got 'dog', which is registered already");
  EXPECT_EQ(registry.names(), std::vector<std::string>{"dog"});
}

TEST(Registry, Choices_JoinsTheNamesAsASentenceDoes) {
  const Registry<Row> three("animal", {{"cat", ""}, {"dog", ""}, {"cow", ""}});
  EXPECT_EQ(three.choices(), "cat, dog or cow");
  EXPECT_EQ(three.list(), "cat, dog, cow");
  EXPECT_EQ(Registry<Row>("animal", {{"cat", ""}}).choices(), "cat");
  EXPECT_EQ(Registry<Row>("animal").choices(), "");
}

}  // namespace
}  // namespace tandem
