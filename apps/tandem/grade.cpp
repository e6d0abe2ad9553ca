// tandem grade: grades a submission, or a folder of them.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "apps/tandem/status_line.h"
#include "apps/tandem/terminal.h"
#include "tandem/core/clock.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/process/run_program.h"
#include "tandem/report/grade_json.h"
#include "tandem/report/grade_page.h"
#include "tandem/report/grade_text.h"
#include "tandem/report/provenance.h"
#include "tandem/study/grade/grade_class.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string submission, profile = "perceptron-and-kernels", html, json, out, print_profile;
  std::optional<std::uint64_t> seed;
  bool is_class = false, is_student = false, submit = false;
};

std::vector<Fact> made_by(const std::string& command_line) {
  std::vector<Fact> facts = provenance(command_line, 0);
  std::erase_if(facts, [](const Fact& fact) { return fact.name == "seed"; });
  return facts;
}

// Where the results of the students are: --out, else beside the page or the JSON of the class.
fs::path results_folder(const Flags& flags) {
  if (!flags.out.empty()) return flags.out;
  for (const std::string& path : {flags.html, flags.json}) {
    if (path.empty() || is_stdout(path)) continue;
    const fs::path folder = fs::path(path).replace_extension();
    std::error_code ignored;
    return fs::equivalent(folder, flags.submission, ignored) ? fs::path(folder.string() + "-grades") : folder;
  }
  return "grades";
}

void write_page(const Flags& flags, const std::string& page) {
  if (flags.html.empty()) return;
  write_output(flags.html, page, "grade");
  if (!is_stdout(flags.html)) print_message("Wrote {}\n", flags.html);
}

// Shows what is graded, and for how long.
std::function<void(const std::string&)> progress_on(StatusLine& line, const std::string& student) {
  return [&line, student, watch = Stopwatch()](const std::string& what) {
    line.show(fmt::format("{}: {} ({:.0f} s)", student, what, watch.elapsed_ms() / 1e3));
  };
}

int grade_one(const Flags& flags, const GradeProfile& profile, const std::string& command_line) {
  const std::vector<Fact> facts = made_by(command_line);
  const std::string name = submission_name(flags.submission);
  StatusLine line;
  const auto on_progress = progress_on(line, name);
  GradeReport report;
  std::string page;
  if (flags.out.empty()) {
    report = grade(open_submission(flags.submission), profile,
                   {.seed = choose_seed(flags.seed, profile), .on_progress = on_progress});
    report.provenance = facts;
    page = grade_page(report);
  } else {
    report = grade_into(
                 flags.submission, profile,
                 {.results = flags.out, .seed = flags.seed, .provenance = facts, .on_progress = on_progress})
                 .report;
    constexpr std::uint64_t max_bytes =
        1 << 30;  // the page has the pictures, which a result read again has not
    page = read_file("grade", fs::path(flags.out) / (name + ".html"), max_bytes);
  }
  line.clear();
  if (!is_stdout(flags.json) && !is_stdout(flags.html))
    print_output("{}", grade_text(report, terminal_style(stdout)));
  write_page(flags, page);
  if (!flags.json.empty()) write_output(flags.json, to_json_text(report), "grade");
  return 0;
}

// The submissions of a class; the folder of results may be among them.
std::vector<fs::path> students_of(const Flags& flags, const fs::path& results) {
  std::vector<fs::path> all = submissions_in(flags.submission);
  std::erase_if(all, [&](const fs::path& path) {
    std::error_code ignored;
    return fs::equivalent(path, results, ignored);
  });
  return all;
}

int submit_class(const Flags& flags, const GradeProfile& profile) {
  const fs::path results = results_folder(flags);
  const std::vector<fs::path> students = students_of(flags, results);
  std::string profile_word = flags.profile;
  if (profile_word.ends_with(".toml")) profile_word = fs::absolute(profile_word).string();
  const std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(),
                                         "grade",
                                         "--student",
                                         "--profile",
                                         profile_word,
                                         "--out",
                                         fs::absolute(results).string()};
  fs::create_directories(results);
  const fs::path script = results / "grade.sbatch";
  write_file("grade", script, sbatch_text(students, command, profile));
  print_output("Wrote {}: {} submissions\n", script.string(), students.size());
  const std::string problem = run_program({"sbatch", script.string()}, {});
  if (problem.empty())
    print_output(
        "Submitted. When the jobs are done, run this command again without --submit: it makes the page.\n");
  else
    print_output("Not submitted: {}. Submit it where SLURM is: sbatch {}\n", problem, script.string());
  return 0;
}

int grade_class(const Flags& flags, const GradeProfile& profile, const std::string& command_line) {
  const fs::path results = results_folder(flags);
  const std::vector<fs::path> students = students_of(flags, results);
  ClassOptions options{.results = results, .seed = flags.seed, .provenance = made_by(command_line)};
  std::vector<GradeReport> reports;
  std::vector<ClassEntry> entries;
  int failures = 0;
  for (std::size_t i = 0; i < students.size(); ++i) {
    const std::string name = submission_name(students[i]);
    const Stopwatch watch;
    try {
      StatusLine line;
      options.on_progress = progress_on(line, name);
      const ClassResult result = grade_into(students[i], profile, options);
      line.clear();
      print_message("{} of {}: {}: {} of {} points{}\n", i + 1, students.size(), name,
                    format_points(result.report.points()), format_points(result.report.of()),
                    result.resumed ? ", graded before"
                                   : fmt::format(" ({})", format_duration(watch.elapsed_ms() / 1e3)));
      reports.push_back(result.report);
      const fs::path page = fs::absolute(results / (name + ".html"));
      const fs::path from = flags.html.empty() || is_stdout(flags.html)
                                ? fs::current_path()
                                : fs::absolute(flags.html).parent_path();
      entries.push_back({result.report, page.lexically_relative(from).generic_string()});
    } catch (const std::exception& error) {  // of this machine, not of the submission
      print_message("{} of {}: {}: not graded: {}\n", i + 1, students.size(), name, error.what());
      ++failures;
    }
  }
  if (!is_stdout(flags.json) && !is_stdout(flags.html))
    print_output("{}", class_text(reports, terminal_style(stdout)));
  const std::string title = fmt::format("{}: {}", submission_name(flags.submission), profile.title);
  write_page(flags, class_page(entries, title, options.provenance));
  if (!flags.json.empty()) write_output(flags.json, to_json_text(reports), "grade");
  print_message("Results of the students are in {}\n", results.string());
  return failures == 0 ? 0 : 1;
}

int run(const Flags& flags, const std::string& command_line) {
  if (!flags.print_profile.empty()) {
    print_output("{}", shipped_profile(flags.print_profile));
    return 0;
  }
  const GradeProfile profile = read_profile(flags.profile);
  check_output(flags.html, "grade");
  check_output(flags.json, "grade");
  const bool is_class =
      flags.is_class || flags.submit || (!flags.is_student && is_class_folder(flags.submission));
  if (!is_class) return grade_one(flags, profile, command_line);
  return flags.submit ? submit_class(flags, profile) : grade_class(flags, profile, command_line);
}

}  // namespace

void add_grade_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command =
      app.add_subcommand("grade", "Grade a submission, or a class: correctness, speed, rules");
  std::string profiles;
  for (const std::string& name : profile_names()) profiles += (profiles.empty() ? "" : ", ") + name;
  command->footer(
      "A submission is a folder, a .zip file or a source file; a part is in max.cpp, max.py, …, in "
      "kernels.*,\n"
      "or in the only file. A folder of submissions is a class: one page per student, and what is graded\n"
      "already is not graded again. The code runs in a sandbox; docs/grading.md says what that means.\n"
      "Examples: tandem grade ada/ --html ada.html\n"
      "          tandem grade class/ --profile course.toml --html class.html");
  auto flags = std::make_shared<Flags>();
  CLI::Option* const submission =
      command
          ->add_option("SUBMISSION", flags->submission,
                       "A folder, a .zip file, a source file, or a folder of these")
          ->type_name("");
  command->add_option("--profile,-p", flags->profile, fmt::format("{} or FILE.toml", profiles))
      ->type_name("PROFILE")
      ->capture_default_str();
  auto* html = command->add_option("--html", flags->html, "Write the page of the student or the class")
                   ->type_name("FILE");
  auto* json = add_json_flag(*command, flags->json, "The result as JSON, for the teacher: it has the seed");
  command
      ->add_option("--out,-o", flags->out,
                   "Folder for a page and a JSON file per student; default: named after --html")
      ->type_name("FOLDER");
  command->add_flag("--class", flags->is_class, "The folder holds submissions, each a source file");
  command
      ->add_flag("--student", flags->is_student, "The folder is one submission, with sources in its folders")
      ->group(rare_group)
      ->excludes("--class");
  auto* submit = command->add_flag("--submit", flags->submit, "Grade the class as a SLURM job array");
  command->add_option("--seed", flags->seed, "Seed of the hidden inputs; default: the profile's, or random")
      ->type_name("N")
      ->group(rare_group)
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  auto* print =
      command->add_option("--print-profile", flags->print_profile, "Print a profile, to start your own from")
          ->type_name("NAME")
          ->check(usage_check([](const std::string& name) { shipped_profile(name); }));
  command->callback([flags, submission, html, json, submit, print, &action, command_line] {
    if (submission->empty() && print->empty()) throw CLI::RequiredError("SUBMISSION");
    if (is_stdout(flags->json) && is_stdout(flags->html))
      throw CLI::ExcludesError(json->get_name() + " -", html->get_name() + " -");
    if (flags->submit && !flags->json.empty()) throw CLI::ExcludesError(submit->get_name(), json->get_name());
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
