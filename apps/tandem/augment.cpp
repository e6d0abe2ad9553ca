// tandem augment: renders a contact sheet that shows what a recipe does to images.
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/augment/augment_sheet.h"
#include "tandem/core/write_file.h"
#include "tandem/image/encode_png.h"

namespace tandem {
namespace {

struct Flags {
  std::vector<std::string> images;
  std::string recipe = "digits", output;
  AugmentSheetOptions sheet;
};

int run(const Flags& flags) {
  check_writable("augment", flags.output);
  const std::vector<std::filesystem::path> files(flags.images.begin(), flags.images.end());
  save_png(flags.output, augment_sheet(files, Transform::parse(flags.recipe, sheet_cell), flags.sheet));
  return 0;
}

}  // namespace

void add_augment_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("augment", "Show what augmentation does to images");
  command->footer(
      "One row per image: the original, then the augmented versions of the first training epochs.\n"
      "Examples: tandem augment five.png seven.png -o sheet.png\n"
      "          tandem augment photo.jpg --augment photo --count 4 -o sheet.png\n\n"
      "Operations of a recipe, separated by commas:\n" +
      transform_help());
  auto flags = std::make_shared<Flags>();
  command->add_option("IMAGE", flags->images, "Image files")->required()->type_name("");
  command
      ->add_option("--augment", flags->recipe,
                   "digits (default), photo, none, or a recipe such as \"crop, flip 0.5\"")
      ->type_name("RECIPE")
      ->check(usage_check([](const std::string& text) { Transform::parse(text, sheet_cell); }));
  command->add_option("--count", flags->sheet.count, "Augmented versions of each image, 8 by default")
      ->type_name("N")
      ->check(whole_number_check(1, max_sheet_variants));
  command->add_option("--seed", flags->sheet.seed, "Random seed, 1 by default")
      ->type_name("N")
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  command->add_option("-o,--output", flags->output, "Output PNG file")->required()->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
