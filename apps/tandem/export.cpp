// tandem export: writes a trained model as an ONNX file, and verifies it.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/data/image_folder.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/format_number.h"
#include "tandem/train/export/export_onnx.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, out, input = "image", weights = "fp32", json;
  std::vector<std::string> images;
  std::size_t count = 8;
  bool integer_sums = false;
};

// The first images of files and folders. One that cannot be read is an error: it was chosen by the user.
std::vector<Image> read_images(const std::vector<std::string>& paths, std::size_t count) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    const ImageList found = list_images(path);
    files.insert(files.end(), found.files.begin(), found.files.end());
  }
  std::vector<Image> images;
  const std::size_t used = std::min(count, files.size());
  for (std::size_t i = 0; i < used; ++i)  // evenly chosen, so that every class of a folder takes part
    images.push_back(load_image_file(files[i * files.size() / used]));
  return images;
}

std::string to_json_text(const ExportReport& report) {
  const nlohmann::ordered_json json{{"file", report.file},
                                    {"bytes", report.bytes},
                                    {"opset", report.opset},
                                    {"nodes", report.nodes},
                                    {"images", report.images},
                                    {"max_difference", report.max_difference},
                                    {"same_class", report.same_class}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(const Flags& flags) {
  check_output(flags.json, "export");
  check(flags.out.ends_with(".onnx"), "[export] {}: expected a name that ends in .onnx", flags.out);
  Model model = load_model(flags.model);
  const ExportReport report = export_onnx(model, flags.out,
                                          {.input = parse_export_input(flags.input),
                                           .weights = parse_export_weights(flags.weights),
                                           .integer_sums = flags.integer_sums,
                                           .images = read_images(flags.images, flags.count)});
  if (!is_stdout(flags.json)) {
    print_output("{}: ONNX, opset {}, {} nodes, {:.1f} MB\n", report.file, report.opset, report.nodes,
                 static_cast<double>(report.bytes) / 1e6);
    print_output("Verified with {} image{}: the same class for {}, probabilities differ by at most {:.1g}\n",
                 report.images, report.images == 1 ? "" : "s", report.same_class, report.max_difference);
  }
  if (!flags.json.empty()) write_output(flags.json, to_json_text(report), "export");
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("export", "Write a trained model as an ONNX file, verified");
  command->footer(
      "The file takes an 8-bit RGB image [height, width, 3] of any size and gives class probabilities. "
      "Resize,\n"
      "crop and normalization are in the graph and equal Tandem's to the byte. The caller decodes the file,\n"
      "applies its EXIF orientation and converts it to RGB. Class names are in the metadata "
      "(tandem.classes).\n"
      "Before the file is written, its graph is computed on images and compared with the model; a "
      "difference\n"
      "above 0.001 in probability is an error (0.05 with rounded weights, 0.1 for a model in 8-bit "
      "integers,\n"
      "which becomes a QDQ graph, and 0.2 with --integer-sums).\n"
      "Example: tandem export runs/plates-resnet18-1 -o plates.onnx --images photos");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder")
      ->required()
      ->type_name("");
  command->add_option("-o,--out", flags->out, "The file to write, NAME.onnx")->required()->type_name("FILE");
  command
      ->add_option("--input", flags->input,
                   "image, or tensor: normalized f32 [batch, channels, height, width]")
      ->type_name("KIND")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) { parse_export_input(text); }));
  command->add_option("--weights", flags->weights, "Store weights as fp32, fp16 or bf16; computed in fp32")
      ->type_name("TYPE")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) { parse_export_weights(text); }));
  command->add_flag("--integer-sums", flags->integer_sums,
                    "8-bit models: round before residual sums: faster in ONNX Runtime");
  command->add_option("--images", flags->images, "Verify with these images or folders, not rendered ones")
      ->type_name("PATH");
  command->add_option("--count", flags->count, "Images of --images to verify with, evenly chosen")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 100'000));
  add_json_flag(*command, flags->json, "The result as JSON, to a file or instead of the text");
  add_with_flag(*command, "The plugin of a model of your own: FILE.so or .cpp");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
