// Operations of the user: registration, the grammar, arguments and random bits, and plugins.
#include "tandem/augment/own_operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tandem/augment/augment.h"
#include "tandem/augment/augment_plugin.h"
#include "tandem/augment/augment_sheet.h"
#include "tandem/augment/own_operation_table.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tests/augment/augment_case.h"
#include "tests/core/error_text.h"
#include "tests/image/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

AugmentCall last_call;

// Adds the first argument to every level and remembers the call.
void brighten(const AugmentCall& call) {
  last_call = call;
  for (std::int64_t i = 0; i < call.size.bytes(); ++i)
    call.out[i] = static_cast<std::uint8_t>(call.in[i] + static_cast<int>(call.arguments[0]));
}

class OwnOperation : public testing::Test {
 protected:
  OwnOperation() {
    register_augmentation({.name = "brighten", .summary = "adds levels", .arguments = 1, .apply = brighten});
    register_augmentation({.name = "spots", .summary = "two ranges", .arguments = 2, .apply = brighten});
    register_augmentation({.name = "keep_size", .apply = brighten});
  }
  ~OwnOperation() override { detail::remove_own_operations(); }
};

TEST_F(OwnOperation, Recipe_ParsesAndPrintsAsWritten) {
  for (const char* text : {"brighten 1 5", "rotate -10 10, brighten 0.5 2, shift -2 2",
                           "spots -1 1 0.25 4, keep_size", "noise 0 0.1, keep_size, noise 0 0.2"}) {
    const Transform transform = Transform::parse(text);
    EXPECT_EQ(transform.to_string(), text);
    EXPECT_EQ(Transform::parse(transform.to_string()), transform);
    EXPECT_TRUE(transform.cpu_only());
  }
  EXPECT_FALSE(Transform::parse("digits").cpu_only());
  EXPECT_EQ(Transform::parse("spots 1 2 3 4").pixels(), compose({random_operation("spots", {1, 2}, {3, 4})}));
  EXPECT_NE(transform_help().find("spots MIN MAX MIN_2 MAX_2: two ranges\n"), std::string::npos);
}

TEST_F(OwnOperation, BadText_IsAnErrorWithTheArguments) {
  EXPECT_EQ(error_text([] { Transform::parse("brighten 1"); }),
            "[augment] expected 'brighten MIN MAX', got 'brighten 1'");
  EXPECT_EQ(error_text([] { Transform::parse("keep_size 1 2"); }),
            "[augment] expected 'keep_size', got 'keep_size 1 2'");
  EXPECT_EQ(error_text([] { Transform::parse("brighten 5 1"); }),
            "[augment] brighten: expected the lower bound first, got 5 to 1");
  EXPECT_EQ(error_text([] { Transform::parse("spots 0 1 0 inf"); }),
            "[augment] spots: expected numbers, got 0 to inf");
  const std::string unknown = error_text([] { Transform::parse("brihgten 1 2"); });
  EXPECT_NE(unknown.find("keep_size"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("did you mean 'brighten'?"), std::string::npos) << unknown;
  EXPECT_EQ(error_text([] { random_operation("missing"); }),
            "[augment] expected the name of a registered operation, got 'missing'");
}

TEST_F(OwnOperation, MoreThanEight_AreRefused) {
  for (const char* name : {"a", "b", "c", "d", "e"}) register_augmentation({.name = name, .apply = brighten});
  EXPECT_EQ(error_text([] { register_augmentation({.name = "f", .apply = brighten}); }),
            "[augment] expected at most 8 operations of your own, got f as well");
}

TEST_F(OwnOperation, Name_MustBeANewWord) {
  const auto text = [](const std::string& name) {
    return error_text([&] { register_augmentation({.name = name, .apply = brighten}); });
  };
  for (const char* name : {"rotate", "crop", "none", "digits", "brighten"})
    EXPECT_EQ(text(name), "[augment] expected a new name for an operation, got '" + std::string(name) +
                              "', which is taken");
  for (const char* name : {"", "two words", "a,b", "1st"})
    EXPECT_EQ(text(name),
              "[augment] expected a name of up to 64 letters, digits and underscores for an "
              "operation, got '" +
                  std::string(name) + "'");
  EXPECT_EQ(error_text([] { register_augmentation({.name = "three", .arguments = 3, .apply = brighten}); }),
            "[augment] three: expected 0 to 2 arguments, got 3");
  EXPECT_EQ(error_text([] { register_augmentation({.name = "nothing"}); }),
            "[augment] nothing: expected a function, got none");
}

// The arguments and random bits are the generator's words for this seed, epoch, sample and operation.
TEST_F(OwnOperation, Call_HasArgumentsAndBitsOfItsKey) {
  const ImageSize size{5, 7, 1};
  const Levels in = random_levels(size, 3);
  Levels out(in.size());
  AugmentScratch scratch;
  const RandomKey key{.seed = 9, .epoch = 4, .sample = 17};
  augment_image(Transform::parse("shift 0 0, spots 10 20 -3 -2").pixels(), size, key, in.data(), out.data(),
                scratch);
  RandomKey own = key;
  own.operation = 1;
  const Words4 words = own.block(0);
  EXPECT_EQ(last_call.arguments[0], detail::sample_between({10, 20}, words.word[0], words.word[1]));
  EXPECT_EQ(last_call.arguments[1], detail::sample_between({-3, -2}, words.word[2], words.word[3]));
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(last_call.random[i], own.block(1 + i / 4).word[i % 4]);
  EXPECT_EQ(last_call.size, size);
}

// One recipe gives the bits of its operations one after the other.
TEST_F(OwnOperation, InAnyPosition_GivesTheBitsOfSeparateOperations) {
  const ImageSize size{12, 9, 3};
  const Levels in = random_levels(size, 5);
  AugmentScratch scratch;
  for (const char* text :
       {"brighten 1 9", "brighten 1 9, rotate -20 20, shift -2 2", "rotate -20 20, brighten 1 9",
        "rotate -20 20, noise 0 0.2, brighten 1 9, brighten 1 9, skew -1 1, noise 0 0.1"}) {
    const Recipe recipe = Transform::parse(text).pixels();
    const RandomKey key{.seed = 2, .epoch = 1, .sample = 8};
    Levels out(in.size());
    augment_image(recipe, size, key, in.data(), out.data(), scratch);
    const std::vector<SampledStep> steps = sample_steps(recipe, size, key);
    Levels expected = in;
    for (int i = 0; i < recipe.count; ++i) {
      if (recipe.steps[i].kind == AugmentKind::custom) {
        for (std::uint8_t& level : expected)
          level = static_cast<std::uint8_t>(
              level + static_cast<int>(steps[static_cast<std::size_t>(i)].arguments[0]));
        continue;
      }
      // The other operations before position i do nothing, so that its key stays the same.
      Recipe one;
      one.count = i + 1;
      for (int k = 0; k < i; ++k) one.steps[k] = random_shift({0, 0}, {0, 0});
      one.steps[i] = recipe.steps[i];
      Levels next(in.size());
      augment_image(one, size, key, expected.data(), next.data(), scratch);
      expected = next;
    }
    EXPECT_EQ(out, expected) << text;
  }
}

TEST_F(OwnOperation, Sheet_LabelsItsArguments) {
  const Image image = make_image(8, 8, 1);
  const auto row = augment_row(image, "a", 0, Transform::parse("brighten 2 2, keep_size, spots 1 1 0.5 0.5"),
                               {.count = 1});
  ASSERT_EQ(row.size(), 2U);
  EXPECT_EQ(row[1].label, "brighten 2\nkeep_size\nspots 1 0.5");
}

// A plugin from C source in a folder of its own.
class AugmentPlugin : public testing::Test {
 protected:
  ~AugmentPlugin() override { detail::remove_own_operations(); }

  std::filesystem::path compiled(const std::string& code) {
    const auto source = folder_ / ("plugin" + std::to_string(files_.size()) + ".c");
    std::ofstream(source) << "#include <tandem/plugin.h>\n" << code;
    files_.push_back(prepare_plugin(source));
    return files_.back().library;
  }
  std::string error_of(const std::string& code) {
    const auto library = compiled(code);
    const std::string text = error_text([&] { load_augmentation(library); });
    const std::string start = "[plugin] " + library.string();
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }

  TempFolder folder_;
  std::vector<PluginFile> files_;
};

constexpr const char* version = "int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n";
constexpr const char* rest =
    "int tandem_augment_arguments(void) { return 0; }\n"
    "int tandem_augment(const TandemAugmentCall* call) { return call->height == 3 ? 7 : 0; }\n";

TEST_F(AugmentPlugin, MissingFunctionsAndOtherVersions_AreNamed) {
  EXPECT_EQ(error_of("int x;"), " has no function tandem_plugin_version");
  EXPECT_EQ(error_of("int tandem_plugin_version(void) { return 99; }"),
            " was made for version 99 of the plugin interface, this is version 1");
  EXPECT_EQ(error_of(version), " has no function tandem_augment");
  EXPECT_EQ(error_of(std::string(version) + rest), " has no function tandem_augment_name");
  EXPECT_EQ(
      error_of(std::string(version) + rest + "const char* tandem_augment_name(void) { return \"skew\"; }"),
      "[augment] expected a new name for an operation, got 'skew', which is taken");
  EXPECT_EQ(error_of(std::string(version) + rest + "const char* tandem_augment_name(void) { return 0; }"),
            "[augment] expected a name of up to 64 letters, digits and underscores for an "
            "operation, got ''");
  const std::string text = error_text([&] { load_augmentation(folder_ / "missing.so"); });
  EXPECT_NE(text.find("missing.so cannot be loaded: "), std::string::npos) << text;
}

TEST_F(AugmentPlugin, ReturnValue_EndsTheRun) {
  load_augmentation(compiled(std::string(version) + rest +
                             "const char* tandem_augment_name(void) { return \"refuses\"; }"));
  const Levels in(9, 1);
  Levels out(9);
  AugmentScratch scratch;
  EXPECT_EQ(
      error_text([&] {
        augment_image(Transform::parse("refuses").pixels(), {3, 3, 1}, {}, in.data(), out.data(), scratch);
      }),
      "[augment] refuses returned 7 for an image of 3x3 with 1 channel");
}

// round(level · (1 − darkness · (distance / distance of a corner)²)), as the example defines it.
TEST_F(AugmentPlugin, ExampleVignette_FollowsItsFormula) {
  files_.push_back(
      prepare_plugin(std::filesystem::path(source_folder) / "examples/plugins/own_augmentation/vignette.c"));
  load_augmentation(files_.back().library);
  const ImageSize size{5, 9, 3};
  const Levels in = random_levels(size, 6);
  Levels out(in.size());
  AugmentScratch scratch;
  augment_image(Transform::parse("vignette 0.75 0.75").pixels(), size, {}, in.data(), out.data(), scratch);
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 9; ++x)
      for (int c = 0; c < 3; ++c) {
        const auto i = static_cast<std::size_t>((y * 9 + x) * 3 + c);
        const double squared = (x - 4.0) * (x - 4.0) + (y - 2.0) * (y - 2.0);
        EXPECT_NEAR(out[i], in[i] * (1 - 0.75 * squared / 20), 0.5 + 1e-9);
      }
}

}  // namespace
}  // namespace tandem
