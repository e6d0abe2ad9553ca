#include "tandem/study/rank_determinism.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/files/sha256.h"
#include "tandem/process/run_program.h"
#include "tandem/study/measure.h"
#include "tandem/train/run_folder.h"

namespace tandem {
namespace {

std::string label_of(int ranks) {
  return ranks == 1 ? "one process" : fmt::format("{} ranks", ranks);
}

// Of the program's messages, the one about the error.
std::string error_in(const std::string& messages) {
  constexpr std::string_view mark = "error: ";
  const std::size_t begin = messages.find(mark);
  if (begin == std::string::npos) return {};
  return ": " + messages.substr(begin + mark.size(), messages.find('\n', begin) - begin - mark.size());
}

RankRow train_on(int ranks, const RankRunOptions& options, const RunFolder& folder) {
  std::vector<std::string> words{options.program, "train"};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.insert(words.end(), {"--shards", std::to_string(options.shards), "--ranks", std::to_string(ranks),
                             "--out", folder.path.string()});
  std::string messages;
  const Stopwatch watch;
  const std::string problem = run_program(words, {.folder = {}, .timeout_s = 3600, .errors = &messages});
  check(problem.empty(), "[verify-determinism] training on {} failed{}", label_of(ranks), error_in(messages));
  return {.ranks = ranks, .seconds = watch.elapsed_ms() / 1000, .hash = sha256_of_file(folder.best())};
}

}  // namespace

std::vector<RankRow> verify_ranks(const RankRunOptions& options) {
  std::vector<int> numbers = options.ranks;
  numbers.push_back(1);
  const ScratchFolder scratch;
  std::vector<RankRow> rows;
  for (const int ranks : increasing(numbers)) {
    if (options.on_progress) options.on_progress("training on " + label_of(ranks));
    rows.push_back(train_on(ranks, options, RunFolder{scratch.path() / std::to_string(ranks)}));
    rows.back().same = rows.back().hash == rows.front().hash;
  }
  return rows;
}

bool is_deterministic(const std::vector<RankRow>& rows) {
  return std::ranges::all_of(rows, &RankRow::same);
}

std::string rank_determinism_text(const std::vector<RankRow>& rows, const std::string& what,
                                  const TextStyle& style) {
  Table table{.columns = {{"trained by"}, {"time", Align::right}, {"SHA-256 of the model"}, {"result"}},
              .rows = {}};
  for (const RankRow& row : rows)
    table.rows.push_back({{},
                          {{label_of(row.ranks)},
                           {fmt::format("{:.1f} s", row.seconds)},
                           {row.hash.substr(0, 16)},
                           {row.same ? "same" : "DIFFERENT", row.same ? Tone::good : Tone::bad}}});
  const auto differing = std::ranges::count(rows, false, &RankRow::same);
  const std::string sentence = differing == 0
                                   ? fmt::format("The model is the same on every number of ranks ({}).", what)
                                   : fmt::format("{} of {} runs give another model than one process ({}).",
                                                 differing, rows.size(), what);
  return fmt::format("{}\n{}\n", format_table(table, style),
                     colorize(sentence, differing == 0 ? Tone::good : Tone::bad, style));
}

}  // namespace tandem
