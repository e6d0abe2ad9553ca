#include "tandem/study/grade/grade.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/study/grade/grade_case.h"
#include "tandem/study/grade/source_rules.h"
#include "tandem/study/grade/task.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/plugin/python.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string without_prefix(const std::string& text) {
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

GradeReport empty_report(const GradeProfile& profile) {
  GradeReport report{.profile = profile.name,
                     .title = profile.title,
                     .profile_hash = profile.hash,
                     .full_up_to = profile.curve.full,
                     .zero_from = profile.curve.zero};
  for (const GradePart& part : profile.parts)
    report.parts.push_back({.name = part.name,
                            .title = part.title,
                            .task = grade_tasks().get(part.task).summary,
                            .of = part.weight});
  return report;
}

// Nothing of the teacher's but where programs and libraries are, and how many threads libraries may use: one
// that uses more than the reference would be measured by how busy the machine is.
std::vector<std::string> graded_environment(int threads) {
  std::vector<std::string> all{"HOME=/nonexistent", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"};
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH"})
    if (const char* const value = std::getenv(name)) all.push_back(fmt::format("{}={}", name, value));
  for (const char* const library : {"OMP", "OPENBLAS", "MKL", "NUMBA"})
    all.push_back(fmt::format("{}_NUM_THREADS={}", library, threads));
  return all;
}

// The devices of NVIDIA's driver, and what its library reads. False when there are none.
bool allow_gpus(SandboxOptions& sandbox) {
  std::error_code none;
  bool found = false;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", none))
    if (entry.path().filename().string().starts_with("nvidia")) {
      sandbox.writable.push_back(entry.path().string());
      found = true;
    }
  if (!found) return false;
  for (const char* const path :
       {"/proc/driver", "/proc/devices", "/proc/modules", "/proc/self", "/proc/sys/vm/mmap_min_addr", "/sys"})
    sandbox.readable.emplace_back(path);
  sandbox.writable.emplace_back(
      "/proc/self/task");  // the names of its threads; CUDA does not start otherwise
  return true;
}

class Grader {
 public:
  Grader(const Submission& submission, const GradeProfile& profile, const GradeOptions& options)
      : submission_(submission), profile_(profile), options_(options) {}

  GradeReport run() {
    GradeReport report = empty_report(profile_);
    report.student = submission_.name;
    report.submission_hash = submission_.hash;
    report.seed = options_.seed;
    report.machine = report_facts();
    report.missing_protections = missing_protections(sandbox({}));
    if (::geteuid() != 0)
      report.missing_protections.emplace_back("the code runs as this user (only root can choose another)");
    for (std::size_t i = 0; i < report.parts.size(); ++i) grade_part(profile_.parts[i], i, report.parts[i]);
    report.elapsed_s = watch_.elapsed_ms() / 1e3;
    return report;
  }

 private:
  struct Prepared {
    PluginFile file;
    std::string problem;
  };

  double time_left_s() const { return profile_.limits.seconds - watch_.elapsed_ms() / 1e3; }

  void grade_part(const GradePart& part, std::size_t index, GradedPart& graded) {
    const int threads = part.threads > 0 ? part.threads : usable_cpus();
    if (!part.timed.empty())
      graded.reference =
          fmt::format("{}, {} thread{}", name_of(part.reference), threads, threads == 1 ? "" : "s");
    const std::optional<fs::path> source = find_source(part, graded);
    if (!source) return;
    graded.file = source->lexically_relative(submission_.folder).generic_string();
    if (breaks_rule(part, *source, graded)) return;
    const Prepared& plugin = prepare(*source, grade_tasks().get(part.task));
    graded.command = plugin.file.command;
    if (!plugin.problem.empty()) {
      graded.problem = plugin.problem + ".";
      return;
    }
    HiddenSeeds seeds(options_.seed + index * 0x9e3779b97f4a7c15u);
    PartCounts counts;
    std::vector<SpeedResult> times;
    std::vector<std::size_t> timed_cases;
    for (const std::string& name : part.cases) {
      const bool timed = std::ranges::find(part.timed, name) != part.timed.end();
      CaseRun run = run_case(part, name, timed, threads, graded.file, plugin.file, seeds);
      ++counts.cases;
      counts.correct += run.problem.empty() ? 1 : 0;
      counts.all_timed_runs_correct &= !run.failed_while_timed && !(timed && !run.speed);
      graded.cases.push_back({.name = name, .problem = run.problem, .pictures = std::move(run.pictures)});
      if (!timed) continue;
      timed_cases.push_back(graded.cases.size() - 1);
      times.push_back(run.speed.value_or(SpeedResult{}));
      if (run.on_gpu) graded.reference = name_of(part.cuda_reference);
    }
    set_points(part, counts, times, timed_cases, graded);
  }

  // None, with the reason, when there is no file for the part.
  std::optional<fs::path> find_source(const GradePart& part, GradedPart& graded) const {
    std::optional<fs::path> source;
    try {
      source = part_file(submission_, part.name);
    } catch (const Error& error) {
      graded.problem = without_prefix(error.what());
      return std::nullopt;
    }
    if (!source)
      graded.problem = fmt::format(
          "There is no file for this part: expected {0}.cpp, {0}.c, {0}.cu, {0}.py or {0}.so.", part.name);
    return source;
  }

  static bool breaks_rule(const GradePart& part, const fs::path& source, GradedPart& graded) {
    if (part.forbidden.empty() && part.launch.empty()) return false;
    const std::string extension = source.extension().string();
    if (extension == ".so") {
      graded.problem = "This part has rules about the source: expected a source file, got a library.";
      return true;
    }
    const std::string text = read_file("grade", source, max_submission_bytes);
    const SourceLanguage language = extension == ".py" ? SourceLanguage::python : SourceLanguage::c;
    if (const std::string used = used_identifier(text, language, part.forbidden); !used.empty())
      graded.problem = fmt::format("{} uses {}, which the rules of this part forbid.", graded.file, used);
    else if (extension == ".cu" && !part.launch.empty() && !has_fragment(text, language, part.launch))
      graded.problem = fmt::format("{} has no launch {}, which the rules of this part ask for.", graded.file,
                                   fmt::join(part.launch, " or "));
    return !graded.problem.empty();
  }

  // Compiles a file once, whatever number of parts use it.
  const Prepared& prepare(const fs::path& source, const GradeTask& task) {
    const auto [found, added] = prepared_.try_emplace({source, task.driver});
    if (!added) return found->second;
    if (options_.on_progress) options_.on_progress("compiling " + source.filename().string());
    const int seconds = std::clamp(static_cast<int>(time_left_s()), 1, profile_.limits.compile_seconds);
    try {
      found->second.file =
          prepare_plugin(task.driver ? with_driver(source, *task.driver) : source,
                         {.sandboxed = true, .program = options_.program, .timeout_s = seconds});
    } catch (const Error& error) {
      found->second.problem = without_prefix(error.what());
      const std::string folder = submission_.folder.string() + "/";  // the student knows other paths
      for (std::size_t at = 0; (at = found->second.problem.find(folder)) != std::string::npos;)
        found->second.problem.erase(at, folder.size());
    }
    return found->second;
  }

  // A file beside the source that has the source and then the driver.
  static fs::path with_driver(const fs::path& source, const TaskDriver& driver) {
    const std::string extension = source.extension().string(), name = source.filename().string();
    check(extension != ".so" && extension != ".cu",
          "[grade] {}: expected a source file in C, C++ or Python for this part", name);
    const fs::path file = source.parent_path() / ("tandem_driver_" + source.stem().string() + extension);
    if (extension == ".py") {
      write_file(
          "grade", file,
          fmt::format("from {} import {}\n{}", source.stem().string(), driver.python_import, driver.python));
    } else {
      // The driver has the only tandem_plugin_version().
      write_file("grade", file,
                 fmt::format("#define tandem_plugin_version submitted_plugin_version\n#include \"{}\"\n"
                             "#undef tandem_plugin_version\n{}",
                             name, driver.c));
    }
    fs::permissions(file, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
    return file;
  }

  SandboxOptions sandbox(const PluginFile& plugin) const {
    SandboxOptions sandbox{.allow_files = false, .readable = system_paths()};
    sandbox.readable.push_back(submission_.copy->path().string());
    if (plugin.folder) sandbox.readable.push_back(plugin.folder->path().string());
    if (plugin.is_python) {
      const fs::path python = python_host_command()[0];
      for (const fs::path& path : {python, fs::canonical(python)})  // a virtual environment, and its base
        sandbox.readable.push_back(path.parent_path().parent_path().string());
    }
    const bool may_use_gpus = plugin.is_python || plugin.source.extension() == ".cu";
    const std::int64_t memory = profile_.limits.memory_mb << 20;
    (may_use_gpus && allow_gpus(sandbox) ? sandbox.data_bytes : sandbox.memory_bytes) = memory;
    sandbox.file_bytes = 1 << 20;
    sandbox.cpu_seconds = static_cast<std::int64_t>(profile_.limits.seconds) * 64;  // of all its threads
    return sandbox;
  }

  CaseRun run_case(const GradePart& part, const std::string& name, bool timed, int threads,
                   const std::string& file, const PluginFile& plugin, HiddenSeeds& seeds) {
    const double left_s = time_left_s();
    if (left_s <= 0)
      return {.problem = fmt::format("not run: the time of the submission, {:g} s, was used up",
                                     profile_.limits.seconds)};
    if (options_.on_progress) options_.on_progress(fmt::format("{}: {}", part.name, name));
    const GradeTask& task = grade_tasks().get(part.task);
    CaseSettings settings{.process = {.program = options_.program, .sandbox = sandbox(plugin)},
                          .reference = part.reference,
                          .cuda_reference = part.cuda_reference,
                          .threads = threads,
                          .max_spread = profile_.curve.max_spread,
                          .time_left_s = left_s,
                          .measured_ms = options_.measured_ms};
    if (task.driver) {  // it starts processes, and their locks are in shared memory
      settings.process.sandbox.allow_processes = true;
      settings.process.sandbox.writable.emplace_back("/dev/shm");
    }
    settings.process.environment = graded_environment(threads);
    settings.process.inherit_environment = false;
    settings.process.timeout_s = std::min(profile_.limits.call_seconds, std::max(left_s, 1.0));
    settings.process.start_timeout_s = std::clamp(left_s, 1.0, 30.0);
    return run_graded_case(plugin, file, task.make(name), timed, settings, seeds);
  }

  void set_points(const GradePart& part, const PartCounts& counts, const std::vector<SpeedResult>& times,
                  const std::vector<std::size_t>& timed_cases, GradedPart& graded) const {
    const PartPoints points = part_points(part.weight, part.speed, profile_.curve, counts, times);
    graded.points = points.correctness + points.speed;
    graded.not_graded = points.speed_not_graded;
    const double each = part.weight * (1 - part.speed) / counts.cases;
    for (GradedCase& one : graded.cases) {
      one.of = each;
      one.points = one.correct() ? each : 0;
    }
    const double correct = static_cast<double>(counts.correct) / counts.cases;
    for (std::size_t i = 0; i < timed_cases.size(); ++i) {
      const SpeedResult& speed = times[i];
      GradedTime time{.student_ms = speed.student_ms,
                      .reference_ms = speed.reference_ms,
                      .ratio = speed.ratio,
                      .spread = speed.spread,
                      .too_noisy = speed.spread > profile_.curve.max_spread,
                      .of = part.weight * part.speed / static_cast<double>(times.size())};
      if (!time.too_noisy && counts.all_timed_runs_correct)
        time.points = time.of * correct * profile_.curve.share(speed.ratio);
      graded.cases[timed_cases[i]].time = time;
    }
  }

  const Submission& submission_;
  const GradeProfile& profile_;
  const GradeOptions& options_;
  Stopwatch watch_;
  std::map<std::pair<fs::path, const TaskDriver*>, Prepared> prepared_;
};

}  // namespace

GradeReport grade(const Submission& submission, const GradeProfile& profile, const GradeOptions& options) {
  return Grader(submission, profile, options).run();
}

GradeReport failed_grade(const std::string& student, const GradeProfile& profile,
                         const std::string& problem) {
  GradeReport report = empty_report(profile);
  report.student = student;
  report.problem = without_prefix(problem);
  report.machine = report_facts();
  return report;
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 1;  // fits a TOML integer
}

}  // namespace tandem
