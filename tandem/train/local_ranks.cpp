#include "tandem/train/local_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/dist/launch.h"
#include "tandem/dist/local_segment.h"
#include "tandem/process/child_process.h"
#include "tandem/text/message.h"
#include "tandem/train/rank_cpus.h"

namespace tandem {
namespace {

constexpr const char* parent_name = "TANDEM_RANK_PARENT";

// SIGTERM, SIGINT, SIGHUP and SIGUSR1 as a descriptor to read from.
class SignalQueue {
 public:
  SignalQueue() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    file_ = Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    check(static_cast<bool>(file_), "[ranks] cannot wait for signals: {}", errno_message(errno));
  }
  ~SignalQueue() {
    while (next() != 0) {  // sent in vain: it would end this process
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return file_.get(); }
  // 0: none.
  int next() const {
    signalfd_siginfo info{};
    return ::read(file_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t signals_{}, before_{};
  Descriptor file_;
};

class LocalRanks {
 public:
  explicit LocalRanks(const LocalRanksOptions& options) : options_(options), segment_(options.ranks) {
    Environment environment = process_environment();
    environment.insert_or_assign(parent_name, std::to_string(::getpid()));
    const CpuList cpus = process_cpus();
    for (int rank = 0; rank < options.ranks; ++rank) {
      const CpuScope share(part_of_cpus(cpus, options.ranks, rank));
      LaunchOptions launch{
          .fds = {segment_.fd()},
          .environment = local_rank_environment(environment, rank, options.ranks, segment_.fd())};
      launch.keep_output = rank == 0;
      if (!environment.contains("OMP_NUM_THREADS"))
        launch.environment->push_back("OMP_NUM_THREADS=" +
                                      std::to_string(std::max(1, usable_cpus() / options.ranks)));
      ranks_.push_back({ChildProcess(options.program, options.arguments, std::move(launch)), {}});
      segment_.set_process(rank, ranks_.back().process.pid());
    }
  }

  int run() {
    while (std::ranges::any_of(ranks_, [](const Rank& rank) { return !rank.status; })) {
      wait();
      while (const int signal = signals_.next()) pass_on(signal);
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) collect(rank);
      if (failed_ && since_failure_.elapsed_ms() > 1000 * options_.grace_s) kill_all();
    }
    name_lost_rank();
    return result();
  }

 private:
  struct Rank {
    ChildProcess process;
    std::optional<int> status;  // as waitpid() gives it
  };

  void wait() {
    std::vector<pollfd> files{{signals_.fd(), POLLIN, 0}};
    bool all_have_files = true;
    for (const Rank& rank : ranks_) {
      if (rank.status) continue;
      all_have_files = all_have_files && rank.process.end_fd() >= 0;
      files.push_back({rank.process.end_fd(), POLLIN, 0});
    }
    ::poll(files.data(), files.size(), failed_ || !all_have_files ? 50 : 1000);
  }

  void collect(std::size_t index) {
    Rank& rank = ranks_[index];
    if (rank.status) return;
    const pid_t pid = rank.process.pid();
    rank.status = rank.process.ended_with();
    if (!rank.status || *rank.status == 0 || failed_) return;
    failed_ = true;
    since_failure_ = {};
    if (WIFSIGNALED(*rank.status))
      lost_ = fmt::format("rank {} (process {}) {}", index, pid, describe_exit(*rank.status));
  }

  void pass_on(int signal) {
    const bool stops = signal != SIGUSR1;
    // A terminal that is closed may send SIGHUP twice.
    if (stops && std::exchange(stopping_, true) && signal != SIGHUP) return kill_all();
    for (const Rank& rank : ranks_)
      if (!rank.status) {
        ::kill(rank.process.pid(), signal);
        return;
      }
  }

  void kill_all() {
    for (Rank& rank : ranks_)
      if (!rank.status) rank.process.kill();
  }

  // A rank says which other one was lost, unless none could.
  void name_lost_rank() const {
    const bool all = std::ranges::all_of(ranks_, [](const Rank& rank) { return WIFSIGNALED(*rank.status); });
    if (!lost_.empty() && all && !stopping_) print_message("tandem: error: {}\n", lost_);
  }

  int result() const {
    bool lost = false;
    for (const Rank& rank : ranks_) {
      if (WIFSIGNALED(*rank.status)) {
        lost = true;
        continue;
      }
      const int status = WEXITSTATUS(*rank.status);
      lost = lost || status == lost_rank_status;
      if (status != 0 && status != lost_rank_status) return status;
    }
    if (lost && stopping_) return 128 + SIGKILL;
    return lost ? lost_rank_status : WEXITSTATUS(*ranks_.front().status);
  }

  LocalRanksOptions options_;
  SignalQueue signals_;
  LocalSegment segment_;
  std::vector<Rank> ranks_;
  bool failed_ = false, stopping_ = false;
  Stopwatch since_failure_;
  std::string lost_;
};

}  // namespace

void end_with_parent() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have ended before: this rank would then wait for others that were never started.
  const char* const parent = std::getenv(parent_name);
  if (parent != nullptr && std::atol(parent) != ::getppid()) ::raise(SIGTERM);
}

int run_local_ranks(const LocalRanksOptions& options) {
  check(options.ranks >= 1 && options.ranks <= LocalSegment::max_ranks,
        "[ranks] expected 1 to {} ranks, got {}", LocalSegment::max_ranks, options.ranks);
  return LocalRanks(options).run();
}

}  // namespace tandem
