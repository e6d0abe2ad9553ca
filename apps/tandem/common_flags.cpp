#include "apps/tandem/common_flags.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/worker.h"
#include "tandem/process/sandbox.h"
#include "tandem/text/message.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/decoders/confined_decoder.h"
#include "tandem/train/views.h"

namespace tandem {

void add_common_flags(CLI::App& app) {
  constexpr int max_threads = 4096;
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_option_no_throw("--threads") == nullptr)
      command
          ->add_option_function<int>(
              "--threads", [](int count) { set_thread_count(count); },
              "CPU threads; default: OMP_NUM_THREADS, else the CPUs of this process")
          ->type_name("N")
          ->check(whole_number_check(1, max_threads))
          ->group(rare_group);
    if (command->get_option_no_throw("--quiet") == nullptr)
      command
          ->add_flag_callback("-q,--quiet", hide_messages,
                              "Only results, warnings and errors: no messages, no progress")
          ->trigger_on_parse()  // before plugins are compiled
          ->group(rare_group);
  }
}

void add_views_flag(CLI::App& command, int& views) {
  command
      .add_option_function<std::string>(
          "--tta", [&views](const std::string& text) { views = parse_views(text); },
          "Average the probabilities of several views: flip (the image and its mirror image), or 2 to 12")
      ->type_name("flip|N")
      ->default_str("none")
      ->check(usage_check([](const std::string& text) { parse_views(text); }));
}

void add_precision_flag(CLI::App& command, MatmulPrecision& precision) {
  command
      .add_option_function<std::string>(
          "--precision", [&precision](const std::string& name) { precision = parse_precision(name); },
          "fp32, bf16 (faster on CPUs with AMX, AVX-512-BF16 or BF16), or tf32 (on a GPU)")
      ->type_name("NAME")
      ->default_str("fp32")
      ->check(usage_check([](const std::string& name) { parse_precision(name); }));
}

void check_precision(MatmulPrecision precision, Device device, const char* op) {
  check(device.is_cuda() || precision != MatmulPrecision::tf32,
        "[{}] expected precision fp32 or bf16 on the CPU, got {}", op, name_of(precision));
}

void add_sandbox_flag(CLI::App& command, bool& sandbox) {
  command.add_flag("--sandbox", sandbox,
                   "Decode images in confined processes: a hostile one costs itself alone");
}

void note_missing_protections() {
  for (const std::string& missing : missing_protections({.allow_files = false}))
    print_message("Note: where images are decoded, {}\n", missing);
}

static void set_confined_decoder(std::int64_t max_pixels, std::int64_t timeout_ms) {
  set_image_decoder(std::make_shared<ConfinedDecoder>(
      DecodeProcessOptions{.program = {}, .max_pixels = max_pixels, .timeout_ms = timeout_ms}));
}

void confine_decoders(std::int64_t max_pixels, std::int64_t timeout_ms) {
  note_missing_protections();
  set_confined_decoder(max_pixels, timeout_ms);
}

void confine_decoders_of_worker() {
  const char* const text = std::getenv(decoder_variable);
  if (text == nullptr) return;
  const auto max_pixels = parse_number<std::int64_t>(text);
  check(max_pixels.has_value(), "[worker] expected a number in {}, got '{}'", decoder_variable, text);
  set_confined_decoder(*max_pixels, training_decode_ms);
}

}  // namespace tandem
