// tandem augment: renders a contact sheet that shows what a recipe does to images, or a training batch.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/augment/augment_sheet.h"
#include "tandem/core/write_file.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/files/packed_path.h"
#include "tandem/image/save_image.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/batch_sheet.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::vector<std::string> inputs;
  std::string recipe, from, output, json;
  std::int64_t count = 0;  // 0: the default
  std::uint64_t seed = 1;
};

bool is_data(const std::vector<std::string>& inputs) {
  return inputs.size() == 1 && (datasets().find(inputs[0]) != nullptr || is_folder(inputs[0]));
}

Image training_batch(const Flags& flags) {
  TrainOptions options;
  options.data = flags.inputs[0];
  options.from = flags.from;
  options.seed = flags.seed;
  options = with_recipe(options, flags.recipe);
  Progress progress;
  const RenderObserver rendering = observe_rendering(progress);
  const TrainingImages train =
      is_photo_data(options.data)
          ? training_photos(options)
          : load_training_data(options, [](const std::string& line) { print_message("{}\n", line); }).train;
  return batch_sheet(train, options,
                     flags.count == 0 ? BatchSheetOptions() : BatchSheetOptions{.count = flags.count});
}

Image variants(const Flags& flags) {
  AugmentSheetOptions options{.seed = flags.seed};
  if (flags.count > 0) options.count = static_cast<int>(flags.count);
  check(options.count <= max_sheet_variants, "[augment] expected at most {} versions of each image, got {}",
        max_sheet_variants, options.count);
  const std::vector<std::filesystem::path> files(flags.inputs.begin(), flags.inputs.end());
  return augment_sheet(files, Transform::parse(flags.recipe.empty() ? "digits" : flags.recipe, sheet_cell),
                       options);
}

int run(const Flags& flags) {
  check_output(flags.json, "augment");
  check_writable("augment", flags.output);
  check(is_image_name(flags.output), "[augment] {}: expected a name that ends in one of {}", flags.output,
        image_endings());
  if (is_data(flags.inputs)) tell_named_data(flags.inputs[0]);
  const Image sheet = is_data(flags.inputs) ? training_batch(flags) : variants(flags);
  save_image(flags.output, sheet);
  if (!is_stdout(flags.json))
    print_output("Wrote {} ({}x{})\n", one_line(flags.output), sheet.width, sheet.height);
  if (!flags.json.empty())
    write_output(flags.json,
                 result_json({{"path", flags.output}, {"width", sheet.width}, {"height", sheet.height}}),
                 "augment");
  return 0;
}

std::string footer() {
  std::string text = "Operations of a recipe, separated by commas:\n";
  std::istringstream lines(transform_help());
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text +
         "\f"
         "For a data set or a folder: the first training batch, labeled. For image files: one row per image, "
         "the original, then its versions in the first epochs.\n"
         "Examples: tandem augment mnist -o batch.png\n"
         "          tandem augment photo.jpg --augment \"crop, flip\" -o sheet.png\n"
         "--help-all lists the operations of a recipe.";
}

}  // namespace

void add_augment_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("augment", "Show what augmentation does to images");
  command->footer(footer());
  auto flags = std::make_shared<Flags>();
  command->add_option("DATA", flags->inputs, datasets().list() + ", a folder, or image files")
      ->required()
      ->type_name("");
  command
      ->add_option("--augment", flags->recipe, "digits, photo, none, or a recipe such as \"crop, flip 0.5\"")
      ->type_name("RECIPE")
      ->default_str("by data")
      ->check(usage_check([](const std::string& text) { Transform::parse(text, sheet_cell); }));
  add_with_flag(*command, "An operation of your own for the recipe: FILE.so, .c or .cpp",
                [command](const std::string&) { command->footer(footer()); });
  command->add_option("--count", flags->count, "Images of the batch, or versions of each image file")
      ->type_name("N")
      ->default_str("36 or 8")
      ->check(whole_number_check(1, max_batch_sheet_images));
  command->add_option("--seed", flags->seed, "Random seed")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  command->add_option("--from", flags->from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  command->add_option("-o,--output", flags->output, "Output: .png, .jpg, .ppm or .pgm")
      ->required()
      ->type_name("FILE");
  add_json_flag(*command, flags->json, "What was written, as JSON");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
