// tandem pack: packs a folder of images into one file.
#include "tandem/data/pack.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string from, to, json, store = name_of(PackStore::pixels);
  PackOptions options;
};

const std::map<std::string, PackStore>& stores() {
  static const std::map<std::string, PackStore> all = [] {
    std::map<std::string, PackStore> made;
    for (const PackStore store : {PackStore::pixels, PackStore::jpeg, PackStore::original})
      made[name_of(store)] = store;
    return made;
  }();
  return all;
}

int run(const Flags& flags) {
  check_output(flags.json, "pack");
  PackOptions options = flags.options;
  options.store = stores().at(flags.store);
  Progress progress;
  options.on_progress = [&](std::int64_t done, std::int64_t total) {
    progress.update({.phase = "pack", .position = done, .total = total});
  };
  const PackCounts counts = pack_images(flags.from, flags.to, options);
  progress.clear();
  if (!is_stdout(flags.json))
    print_output("{}: {} image{}, {:.1f} MB (before {:.1f} MB)\n", flags.to, format_count(counts.images),
                 counts.images == 1 ? "" : "s", static_cast<double>(counts.bytes) / 1e6,
                 static_cast<double>(counts.bytes_before) / 1e6);
  if (!counts.unreadable.empty())
    print_message("Packed as they are, because they cannot be read: {}; the first is {}: {}\n",
                  count_skipped(counts.unreadable), one_line(counts.unreadable[0].name),
                  counts.unreadable[0].reason);
  if (!counts.skipped.empty()) print_message("Not packed: {}\n", count_skipped(counts.skipped));
  if (!flags.json.empty())
    write_output(flags.json,
                 result_json({{"file", flags.to},
                              {"store", flags.store},
                              {"images", counts.images},
                              {"bytes", static_cast<std::int64_t>(counts.bytes)},
                              {"bytes_before", static_cast<std::int64_t>(counts.bytes_before)},
                              {"unreadable", static_cast<std::int64_t>(counts.unreadable.size())},
                              {"not_packed", static_cast<std::int64_t>(counts.skipped.size())}}),
                 "pack");
  return 0;
}

}  // namespace

void add_pack_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("pack", "Pack a folder of images into one mapped file");
  command->footer(
      "The file takes the place of the folder: tandem train set.tandem, eval, predict, check, probe. Its\n"
      "images have their paths below the folder, so that train, val, test and the classes are the same.\n"
      "pixels reads fastest and is the largest; jpeg decodes smaller images; original is only one file in\n"
      "place of many, and training gives the same bits as with the folder. tandem inspect compares all\n"
      "checksums.\n"
      "Example: tandem pack photos -o photos.tandem --store jpeg");
  auto flags = std::make_shared<Flags>();
  command->add_option("DATA", flags->from, "Folder of images, as for train, or a packed set")
      ->required()
      ->type_name("");
  command->add_option("-o,--out", flags->to, "File to write, NAME.tandem")->required()->type_name("FILE");
  command->add_option("--store", flags->store, "What is stored: pixels, jpeg or original")
      ->capture_default_str()
      ->type_name("WHAT")
      ->check(CLI::IsMember(stores()));
  command
      ->add_option("--side", flags->options.side,
                   "Reduce the shorter side of larger images to N; not for original")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(1, std::numeric_limits<std::int32_t>::max()));
  command->add_option("--quality", flags->options.quality, "Of jpeg, from 1 to 100")
      ->capture_default_str()
      ->type_name("Q")
      ->check(whole_number_check(1, 100));
  command->add_flag("--force", flags->options.overwrite, "Write over an existing file");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the text");
  command->add_option("--max-pixels", flags->options.max_pixels, "Treat larger images as unreadable")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(whole_number_check(1, std::numeric_limits<std::int64_t>::max()));
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
