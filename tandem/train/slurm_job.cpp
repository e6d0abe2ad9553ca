#include "tandem/train/slurm_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/shell_words.h"
#include "tandem/train/stop_time.h"

namespace tandem {
namespace {

constexpr std::int64_t max_part = 1'000'000;  // of a time; SLURM's own limit is about 4,000 years of minutes

// One #SBATCH line per resource.
std::string resource_lines(const SlurmJob& job) {
  const int tasks = job.is_one_process() ? 1 : job.ranks_per_node;
  const int cpus = job.cpus_per_rank * (job.is_one_process() ? job.ranks_per_node : 1);
  std::string lines = fmt::format(
      "#SBATCH --job-name=tandem\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n"
      "#SBATCH --cpus-per-task={}\n",
      job.nodes, tasks, cpus);
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) lines += fmt::format("#SBATCH --{}={}\n", flag, value);
  };
  if (job.gpus_per_rank > 0) add("gpus-per-node", std::to_string(job.gpus_per_rank * job.ranks_per_node));
  add("mem", job.memory);
  add("time", job.time);
  add("partition", job.partition);
  add("account", job.account);
  const std::int64_t margin = job.time.empty() ? max_stop_margin_s : stop_margin_s(slurm_seconds(job.time));
  return lines + fmt::format("#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --signal=TERM@{}\n",
                             std::max<std::int64_t>(margin, 1));
}

}  // namespace

std::int64_t slurm_seconds(const std::string& time) {
  const std::string_view text = time;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != text.npos;
  const auto parts = parse_numbers<std::int64_t>(text.substr(has_days ? dash + 1 : 0), ':');
  const auto days = has_days ? parse_number<std::int64_t>(text.substr(0, dash)) : 0;
  const auto is_bad = [](std::int64_t part) { return part < 0 || part > max_part; };
  check(parts && parts->size() <= 3 && days && !is_bad(*days) && !std::ranges::any_of(*parts, is_bad),
        "expected a time limit such as 90 (minutes), 4:00:00 or 1-12:00:00, got '{}'", time);
  // Seconds of each part: after days they begin with hours, alone they end with seconds or are minutes.
  constexpr std::array<std::int64_t, 3> units{3600, 60, 1};
  const std::size_t first = has_days || parts->size() == 3 ? 0 : 1;
  std::int64_t seconds = *days * 86400;
  for (std::size_t i = 0; i < parts->size(); ++i) seconds += (*parts)[i] * units[first + i];
  check(seconds > 0, "expected a time limit above 0, got '{}'", time);
  return seconds;
}

void check_slurm_memory(const std::string& size) {
  std::string_view digits = size;
  if (!digits.empty() && std::string_view("KMGT").find(digits.back()) != std::string_view::npos)
    digits.remove_suffix(1);
  const auto value = parse_number<std::int64_t>(digits);
  check(value && *value >= 0, "expected a size such as 16G or 500M, got '{}'", size);
}

void check_slurm_name(const std::string& name) {
  const auto is_bad = [](unsigned char c) {
    return c <= ' ' || c == 127 || c == '\'' || c == '"' || c == '\\';
  };
  check(!name.empty() && !std::ranges::any_of(name, is_bad),
        "expected a name without spaces and quotes, got '{}'", name);
}

std::string slurm_script(const SlurmJob& job, const std::vector<std::string>& command) {
  const char* const launch = job.is_one_process() ? "srun --ntasks=1" : "srun --mpi=pmix";
  return fmt::format(
      R"(#!/bin/bash
# Trains; after a lost rank or the end of its time the job starts again, at most {retries} times.
{resources}
{launch} --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 \
  {command}
status=$?

restarts=${{SLURM_RESTART_COUNT:-0}}
case $status in
  75 | 137 | 143) # a rank was lost, one was killed, or the run was stopped and saved
    if ((restarts < {retries})); then
      echo "Exit status $status: restart $((restarts + 1)) of {retries}"
      scontrol requeue "$SLURM_JOB_ID"
    else
      echo "Exit status $status after {retries} restarts: submit this script again to go on"
    fi
    ;;
esac
exit $status
)",
      fmt::arg("retries", job.retries), fmt::arg("resources", resource_lines(job)),
      fmt::arg("launch", launch), fmt::arg("command", shell_words(command)));
}

}  // namespace tandem
