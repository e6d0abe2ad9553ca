#include "tandem/study/grade/grade_class.h"

#include <fmt/format.h>

#include <cmath>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/report/grade_json.h"
#include "tandem/report/grade_page.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The result of an earlier grading, if it is of these files and this profile.
std::optional<GradeReport> earlier_result(const fs::path& json, const fs::path& page,
                                          const std::string& submission_hash,
                                          const std::string& profile_hash) {
  if (!fs::exists(json) || !fs::exists(page)) return std::nullopt;
  try {
    constexpr std::uint64_t max_bytes = 64 << 20;
    GradeReport report = parse_grade(read_file("grade", json, max_bytes), json.string());
    if (report.submission_hash == submission_hash && report.profile_hash == profile_hash) return report;
  } catch (const Error&) {  // not a result: it is written anew
  }
  return std::nullopt;
}

// In single quotes for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::uint64_t choose_seed(const std::optional<std::uint64_t>& given, const GradeProfile& profile) {
  return given ? *given : profile.seed ? *profile.seed : random_seed();
}

ClassResult grade_into(const fs::path& path, const GradeProfile& profile, const ClassOptions& options) {
  fs::create_directories(options.results);
  const std::string name = submission_name(path);
  const fs::path json = options.results / (name + ".json"), page = options.results / (name + ".html");
  GradeReport report;
  try {
    const std::string hash = submission_hash(path);
    if (auto earlier = earlier_result(json, page, hash, profile.hash)) return {std::move(*earlier), true};
    report = grade(open_submission(path), profile,
                   {.seed = choose_seed(options.seed, profile),
                    .program = options.program,
                    .on_progress = options.on_progress});
  } catch (const SubmissionError& error) {
    report = failed_grade(name, profile, error.what());
  }
  report.provenance = options.provenance;
  write_file("grade", page, grade_page(report));
  write_file("grade", json, to_json_text(report));  // last: with it, the student is done
  return {std::move(report), false};
}

std::string sbatch_text(const std::vector<fs::path>& submissions, const std::vector<std::string>& command,
                        const GradeProfile& profile) {
  expect(!submissions.empty());
  std::string paths, words;
  for (const fs::path& path : submissions)
    paths += fmt::format("  {}\n", quoted(fs::absolute(path).string()));
  for (const std::string& word : command) words += " " + quoted(word);
  const int minutes = static_cast<int>(std::ceil(profile.limits.seconds * 2 / 60)) + 1;
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name=tandem-grade --array=0-{} --cpus-per-task=2 --time=00:{:02}:00 --output=/dev/null\n"
      "submissions=(\n{})\n"
      "exec{} \"${{submissions[$SLURM_ARRAY_TASK_ID]}}\"\n",
      submissions.size() - 1, std::min(minutes, 59), paths, words);
}

}  // namespace tandem
