// tandem filter: applies a filter to a photograph.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "tandem/augment/photo_filter.h"
#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/npy.h"
#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tandem/image/save_image.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

struct Flags {
  std::string photo, filter, kernel, output, json, device = "auto";
  bool gradient = false;
  std::int64_t max_pixels = LoadOptions{}.max_pixels;
};

bool writes_values(const Flags& flags) {
  return flags.output.ends_with(".npy") || flags.output.ends_with(".csv");
}

void check_output_name(const Flags& flags) {
  const bool values = writes_values(flags);
  check(values || is_image_name(flags.output),
        "[filter] {}: expected a name that ends in one of {}, .npy, .csv", flags.output, image_endings());
  check(!values || flags.filter != "all",
        "[filter] {}: expected an image's name for the sheet of all filters", flags.output);
}

// What was written, as text or JSON.
void report_written(const Flags& flags, std::int64_t width, std::int64_t height) {
  if (!is_stdout(flags.json)) print_output("Wrote {} ({}x{})\n", one_line(flags.output), width, height);
  if (!flags.json.empty())
    write_output(flags.json, result_json({{"path", flags.output}, {"width", width}, {"height", height}}),
                 "filter");
}

int run(const Flags& flags) {
  // One image does not justify the copies to the GPU and back: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  check_output(flags.json, "filter");
  check_writable("filter", flags.output);
  check_output_name(flags);
  const Image photo = flags.photo == "example" ? example_photo(640, 960)
                                               : load_image(flags.photo, {.max_pixels = flags.max_pixels});
  if (flags.filter == "all") {
    const Image sheet = filter_sheet(photo, device);
    save_image(flags.output, sheet);
    report_written(flags, sheet.width, sheet.height);
    return 0;
  }
  const PhotoFilter filter =
      flags.kernel.empty() ? builtin_filters().get(flags.filter) : parse_filter(flags.kernel, flags.gradient);
  if (writes_values(flags)) {
    const Tensor values = filter_values(photo, filter, device);
    write_file("filter", flags.output, flags.output.ends_with(".npy") ? to_npy(values) : to_csv(values));
  } else {
    save_image(flags.output, apply_filter(photo, filter, device));
  }
  report_written(flags, photo.width, photo.height);
  return 0;
}

// "sobel1, sobel2, sobel3, sobel4, ring; all on one sheet: all"
std::string filter_help() {
  return builtin_filters().list() + "; all on one sheet: all";
}

}  // namespace

void add_filter_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("filter", "Detect edges in a photograph, or apply any kernel");
  command->footer(
      "Examples: tandem filter photo.jpg --filter sobel1 -o edges.png\n"
      "          tandem filter example --filter all -o sheet.png\n"
      "          tandem filter photo.jpg --kernel \"1 0 -1; 2 0 -2\" --gradient -o e.png");
  auto flags = std::make_shared<Flags>();
  command->add_option("PHOTO", flags->photo, "Image file, or the word example for a built-in test photograph")
      ->required()
      ->type_name("");
  auto* filter =
      command->add_option("--filter", flags->filter, filter_help())
          ->type_name("NAME")
          ->check(usage_check([](const std::string& name) {
            check(name == "all" || builtin_filters().find(name), "expected one of {}, all, got '{}'{}",
                  builtin_filters().list(), name, did_you_mean(name, builtin_filters().names()));
          }));
  auto* kernel = command->add_option("--kernel", flags->kernel, "Custom kernel, rows separated by semicolons")
                     ->type_name("NUMBERS")
                     ->check(usage_check([](const std::string& text) { parse_filter(text, false); }));
  command->add_flag("--gradient", flags->gradient, "With --kernel K: sqrt(Gx² + Gy²) of K and its transpose");
  command
      ->add_option("-o,--output", flags->output,
                   "Output: .png, .jpg, .ppm or .pgm; .npy or .csv: unscaled values")
      ->required()
      ->type_name("FILE");
  add_json_flag(*command, flags->json, "What was written, as JSON");
  add_device_flag(*command, flags->device, "the CPU");
  command->add_option("--max-pixels", flags->max_pixels, "Reject larger images")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(1, std::int64_t{1} << 40));
  command->callback([flags, filter, kernel, &action] {
    if (filter->empty() && kernel->empty()) throw CLI::RequiredError("--filter or --kernel");
    if (!filter->empty() && !kernel->empty()) throw CLI::ExcludesError("--filter", "--kernel");
    if (flags->gradient && kernel->empty()) throw CLI::RequiresError("--gradient", "--kernel");
    action = [flags] { return run(*flags); };
  });
}

}  // namespace tandem
