// tandem quantize: makes a model in 8-bit integers, and compares it with the one it is made of.
#include "tandem/train/quantize.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/output.h"
#include "tandem/core/write_file.h"
#include "tandem/image/decode.h"
#include "tandem/report/interval.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, data, out, from, json, method = "auto";
  std::int64_t images = 256;
  bool sandbox = false;
};

std::string to_json_text(const QuantizationInfo& info, const std::string& file, std::uintmax_t bytes) {
  const auto interval = [&](double share) {
    const Interval found = wilson_interval(share, info.test_images);
    return nlohmann::ordered_json{found.low, found.high};
  };
  const nlohmann::ordered_json json{{"file", file},
                                    {"bytes", bytes},
                                    {"method", info.method},
                                    {"calibration_images", info.calibration_images},
                                    {"test_images", info.test_images},
                                    {"accuracy_before", info.accuracy_before},
                                    {"interval_before", interval(info.accuracy_before)},
                                    {"accuracy_after", info.accuracy_after},
                                    {"interval_after", interval(info.accuracy_after)},
                                    {"same_class", info.same_class}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(const Flags& flags, const std::string& command_line) {
  check_output(flags.json, "quantize");
  check(flags.out.ends_with(".safetensors"), "[quantize] {}: expected a name that ends in .safetensors",
        flags.out);
  check_writable("quantize", flags.out);
  tell_named_data(flags.data);
  if (flags.sandbox) confine_decoders(LoadOptions().max_pixels);
  Model model = load_model(flags.model);
  Model made;
  {
    Progress progress;
    const EvaluationObserver observer([&](std::int64_t done, std::int64_t images) {
      progress.update({.phase = "Evaluating", .position = done, .total = images});
    });
    const RenderObserver rendering = observe_rendering(progress);
    made = quantize_model(model, flags.data,
                          {.images = flags.images,
                           .method = parse_calibration_method(flags.method),
                           .from = flags.from,
                           .command = command_line});
  }
  save_model(flags.out, *made.module, made.info);
  const std::uintmax_t bytes = std::filesystem::file_size(flags.out);
  const QuantizationInfo& info = *made.info.quantization;
  if (!is_stdout(flags.json))
    print_output("{}{}: {:.1f} MB\n", quantization_text(info), flags.out, static_cast<double>(bytes) / 1e6);
  if (!flags.json.empty()) write_output(flags.json, to_json_text(info, flags.out, bytes), "quantize");
  return 0;
}

}  // namespace

void add_quantize_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("quantize", "Make a ResNet of 8-bit integers for inference");
  command->footer(
      "predict, eval, serve and export use the file as they use the model; it has a quarter of the size and\n"
      "cannot be trained or explained. Norms are folded, weights have one scale per filter, and the ranges "
      "of\n"
      "activations are chosen from training images of DATA. Accuracy before and after, with 95 % intervals,\n"
      "is measured on the test images of DATA as `tandem eval` finds them, those that training holds out if\n"
      "there are no others, and stored in the file.\n"
      "Example: tandem quantize runs/plates-resnet18-1 plates -o small.safetensors");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder of a ResNet")
      ->required()
      ->type_name("");
  command->add_option("DATA", flags->data, "The data it was trained on, as for train")
      ->required()
      ->type_name("");
  command->add_option("-o,--out", flags->out, "The file to write, NAME.safetensors")
      ->required()
      ->type_name("FILE");
  command->add_option("--images", flags->images, "Training images that the ranges are chosen from")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 100'000));
  command
      ->add_option("--method", flags->method,
                   "How ranges are chosen: percentile (99.99 %), entropy, max, or auto: by the outputs")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) { parse_calibration_method(text); }));
  command->add_option("--from", flags->from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  add_json_flag(*command, flags->json, "The result as JSON, to a file or instead of the text");
  add_sandbox_flag(*command, flags->sandbox);
  command->callback([flags, &action, command_line] {
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
