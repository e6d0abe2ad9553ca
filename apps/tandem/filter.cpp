// tandem filter: applies a filter to a photograph.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "tandem/augment/photo_filter.h"
#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"

namespace tandem {
namespace {

struct Flags {
  std::string photo, filter, kernel, output, device = "auto";
  bool gradient = false;
  std::int64_t max_pixels = LoadOptions{}.max_pixels;
};

int run(const Flags& flags) {
  // One image does not justify the copies to the GPU and back: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  check_writable("filter", flags.output);
  const Image photo = flags.photo == "example" ? example_photo(640, 960)
                                               : load_image(flags.photo, {.max_pixels = flags.max_pixels});
  if (flags.filter == "all")
    save_png(flags.output, filter_sheet(photo, device));
  else if (!flags.kernel.empty())
    save_png(flags.output, apply_filter(photo, parse_filter(flags.kernel, flags.gradient), device));
  else
    save_png(flags.output, apply_filter(photo, builtin_filters().get(flags.filter), device));
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
      "          tandem filter photo.jpg --kernel \"1 0 -1; 2 0 -2; 1 0 -1\" --gradient -o edges.png");
  auto flags = std::make_shared<Flags>();
  command->add_option("PHOTO", flags->photo, "Image file, or the word example for a built-in test photograph")
      ->required()
      ->type_name("");
  auto* filter = command->add_option("--filter", flags->filter, filter_help())
                     ->type_name("NAME")
                     ->check(usage_check([](const std::string& name) {
                       check(name == "all" || builtin_filters().find(name),
                             "expected one of {}, all, got '{}'", builtin_filters().list(), name);
                     }));
  auto* kernel = command->add_option("--kernel", flags->kernel, "Custom kernel, rows separated by semicolons")
                     ->type_name("NUMBERS")
                     ->check(usage_check([](const std::string& text) { parse_filter(text, false); }));
  command->add_flag("--gradient", flags->gradient, "With --kernel K: sqrt(Gx² + Gy²) of K and its transpose");
  command->add_option("-o,--output", flags->output, "Output PNG file")->required()->type_name("FILE");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command
      ->add_option("--max-pixels", flags->max_pixels,
                   fmt::format("Reject larger images, {} by default", flags->max_pixels))
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
