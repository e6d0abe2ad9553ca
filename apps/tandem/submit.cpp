// tandem submit: writes a batch script for SLURM, or hands it to sbatch.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/help.h"
#include "apps/tandem/output.h"
#include "apps/tandem/usage.h"
#include "tandem/core/error.h"
#include "tandem/core/write_file.h"
#include "tandem/process/descriptor.h"
#include "tandem/process/launch.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/slurm_job.h"

namespace tandem {
namespace {

constexpr const char* expected_training = "expected -- train DATA --out RUNDIR";

struct Flags {
  SlurmJob job;
  std::string out;
  bool now = false;
  std::vector<std::string> words;  // of the training
};

// The value of a flag, or nothing.
std::string value_of(const CLI::App& command, const std::string& flag) {
  const CLI::Option* const option = command.get_option(flag);
  return option->count() == 0 || option->results().empty() ? std::string() : option->results().front();
}

// Throws what the program would throw for these words, and what a job cannot do.
void check_training(const CLI::App& command) {
  const std::string out = value_of(command, "--out"), resumed = value_of(command, "--resume");
  const std::string folder = out.empty() && resumed != "auto" ? resumed : out;
  if (folder.empty())
    throw CLI::ValidationError("train", "expected --out RUNDIR: a job that starts again needs its folder");
  if (!std::filesystem::path(folder).is_absolute())
    throw CLI::ValidationError(
        "train",
        fmt::format("expected --out with a path from the root, which all nodes see, got '{}'", folder));
  if (command.count("--ranks") > 0)
    throw CLI::ValidationError("train", "expected no --ranks: submit has --ranks-per-node");
}

// The words as the job runs them: of the whole program, and with --resume.
std::vector<std::string> job_command(const Flags& flags) {
  std::error_code ignored;
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe", ignored).string()};
  words.insert(words.end(), flags.words.begin(), flags.words.end());
  const bool resumes = std::ranges::any_of(flags.words, [](const std::string& word) {
    return word == "--resume" || word.starts_with("--resume=");
  });
  if (!resumes) words.insert(words.end(), {"--resume", "auto"});
  const SlurmJob& job = flags.job;
  if (job.is_one_process() && job.ranks_per_node > 1)
    words.insert(words.end(), {"--ranks", std::to_string(job.ranks_per_node)});
  return words;
}

// Prints what sbatch prints, and returns its exit status.
int run_sbatch(const std::string& script) {
  const Descriptor file(::memfd_create("tandem-job", MFD_CLOEXEC));
  const bool kept =
      file && ::write(file.get(), script.data(), script.size()) == static_cast<ssize_t>(script.size());
  check(kept, "[submit] cannot keep the script: {}", errno_message(errno));
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const LaunchResult started =
      launch("sbatch", {"sbatch", path}, {.search_path = true, .fds = {file.get()}, .keep_output = true});
  check(started.error == 0,
        "[submit] cannot start sbatch: {}; is this a machine of the cluster? -o FILE writes the script",
        errno_message(started.error));
  int status = 0;
  while (::waitpid(started.pid, &status, 0) < 0 && errno == EINTR) {
  }
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "[submit] sbatch {}", describe_exit(status));
  return 0;
}

int run(const Flags& flags) {
  const std::string script = slurm_script(flags.job, job_command(flags));
  if (flags.now) return run_sbatch(script);
  if (flags.out.empty()) {
    print_output("{}", script);
    return 0;
  }
  write_file("submit", flags.out, script);
  print_message("Start it with: sbatch {}\n", flags.out);
  return 0;
}

// With a parser of its own, so that a misspelled flag is found now and not when the job starts. Returns the
// error's text, or nothing.
std::string training_problem(const std::vector<std::string>& words) {
  CLI::App app("", "tandem");
  app.require_subcommand(1);
  set_help(app);
  Action action;
  add_train_command(app, action, "");
  add_common_flags(app);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the words from the end
    check_training(*app.get_subcommand("train"));
    return {};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return expected_training;  // --help
    return usage_error(app, error, words);
  }
}

int check_and_run(const Flags& flags) {
  const std::string problem = training_problem(flags.words);
  restore_messages();  // the training may be quiet
  if (problem.empty()) return run(flags);
  print_message("tandem: error: {}\n", one_line(problem));
  return 2;
}

void add_count(CLI::App& command, const std::string& name, int& value, int min, const std::string& help) {
  command.add_option(name, value, help)
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(min, 1 << 16));
}

void add_text(CLI::App& command, const std::string& name, const std::string& value_name, std::string& value,
              const std::string& help, void (*check_text)(const std::string&)) {
  command.add_option(name, value, help)->type_name(value_name)->check(usage_check(check_text));
}

}  // namespace

std::vector<std::string> cut_training(std::vector<std::string>& words) {
  if (words.empty() || words[0] != "submit") return {};
  auto cut = std::ranges::find(words, "--");
  const bool has_dashes = cut != words.end();
  if (!has_dashes)  // a word after a flag is the flag's
    for (cut = words.begin() + 1; cut != words.end(); ++cut)
      if (*cut == "train" && !(cut - 1)->starts_with('-')) break;
  std::vector<std::string> training(cut + (has_dashes ? 1 : 0), words.end());
  words.erase(cut, words.end());
  return training;
}

void add_submit_command(CLI::App& app, Action& action, const std::vector<std::string>& training) {
  CLI::App* command = app.add_subcommand("submit", "Train as a job of a SLURM cluster");
  command->footer(
      "Prints a script for sbatch, or writes it (-o), or starts it (--now). The job saves before its time\n"
      "limit. It then starts again, as after a lost rank or node, and goes on with the same bits. The\n"
      "training needs --out with a path from the root; --resume auto is added. One node runs\n"
      "--ranks-per-node as local ranks, without MPI; several nodes need srun with PMIx.\n"
      "Example: tandem submit --nodes 2 --cpus-per-rank 8 --time 4:00:00 --now -- \\\n"
      "           train photos --model resnet18 --shards 8 --out /scratch/runs/photos");
  auto flags = std::make_shared<Flags>();
  auto stray = std::make_shared<std::vector<std::string>>();
  command->add_option("TRAINING", *stray, "The words of tandem train, after --")
      ->type_name("-- train DATA --out RUNDIR ...");
  SlurmJob& job = flags->job;
  add_count(*command, "--nodes", job.nodes, 1, "Nodes");
  add_count(*command, "--ranks-per-node", job.ranks_per_node, 1, "Ranks on each node");
  add_count(*command, "--cpus-per-rank", job.cpus_per_rank, 1, "CPUs of each rank");
  add_count(*command, "--gpus-per-rank", job.gpus_per_rank, 0, "GPUs of each rank");
  add_text(*command, "--mem", "SIZE", job.memory, "Memory per node: 16G", check_slurm_memory);
  add_text(*command, "--time", "LIMIT", job.time, "Time limit: 90 (minutes), 4:00:00 or 1-12:00:00",
           [](const std::string& text) { slurm_seconds(text); });
  add_text(*command, "--partition", "NAME", job.partition, "Partition (queue)", check_slurm_name);
  add_text(*command, "--account", "NAME", job.account, "Account that pays", check_slurm_name);
  add_count(*command, "--retries", job.retries, 0, "How often the job may start again");
  auto* out = command->add_option("-o,--script", flags->out, "Write the script to FILE")->type_name("FILE");
  command->add_flag("--now", flags->now, "Hand the script to sbatch")->excludes(out);
  command->callback([flags, stray, training, &action] {
    if (!stray->empty() || training.empty() || training[0] != "train") {
      const std::string got = !stray->empty() ? stray->front() : training.empty() ? "none" : training[0];
      throw CLI::ValidationError("TRAINING", fmt::format("{}, got {}", expected_training, got));
    }
    flags->words = training;
    action = [flags] { return check_and_run(*flags); };
  });
}

}  // namespace tandem
