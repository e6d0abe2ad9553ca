#include "tandem/train/read_run.h"

#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"
#include "tandem/files/toml.h"
#include "tandem/report/training_json.h"
#include "tandem/text/utf8.h"
#include "tandem/train/run_folder.h"

namespace tandem {
namespace {

// The confusion matrix of ten thousand classes and the names of a few million photographs fit.
constexpr std::uint64_t max_bytes = 1 << 30;

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

ComparedRun read_run(const std::filesystem::path& path) {
  const RunFolder folder{path};
  for (const std::filesystem::path& file : {folder.config(), folder.report_json()})
    check(is_file(file), "[compare] {}: expected the folder of a training run, it has no {}",
          one_line(path.string()), file.filename().string());
  ComparedRun run{.name = path.string()};
  const TomlTable config =
      parse_toml(read_file("compare", folder.config(), max_bytes), folder.config().string());
  for (const TomlEntry& entry : config.entries) run.options.push_back({entry.key, plain_text(entry.value)});
  run.report = parse_training_report(read_file("compare", folder.report_json(), max_bytes),
                                     folder.report_json().string());
  if (is_file(folder.data())) run.data = sha256_hex(read_file("compare", folder.data(), max_bytes));
  return run;
}

}  // namespace tandem
