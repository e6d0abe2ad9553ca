// The loop of a worker, and the main function of a process worker.
#include "tandem/data/loader/worker.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <string_view>

#include "tandem/augment/own_operation_table.h"
#include "tandem/core/check.h"
#include "tandem/core/message_of.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/block_order.h"
#include "tandem/image/image_decoder.h"
#include "tandem/process/shared_memory.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

// The label of an unreadable image where the plan does not replace it.
constexpr std::int32_t no_label = -1;

// Samples that are not tried: those that crashed workers, and photographs known to be bad before the first
// epoch. A photograph a worker found bad later is tried again: whether its crop can be decoded depends on the
// sampled crop, and the image at a position must not depend on which worker read what before.
class SkippedSamples {
 public:
  SkippedSamples(const Ring& ring, const SampleReader& reader)
      : reader_(reader), crashing_(ring.crashing()) {}

  bool operator()(std::int32_t sample) const {
    return std::find(crashing_.begin(), crashing_.end(), sample) != crashing_.end() ||
           reader_.is_missing(sample);
  }

 private:
  const SampleReader& reader_;
  std::span<const std::int32_t> crashing_;
};

// Records a photograph that could not be decoded.
void report_bad(const Ring& ring, const BadSample& bad) {
  check(!ring.setup().fail_on_bad, "{}", bad.reason);
  check(ring.add_bad(bad), "expected photographs that can be read, but this is the {}th that cannot: {}",
        max_bad + 1, bad.reason);
}

// Binds this thread to the last `count` of its CPUs; 0: leaves it unbound. The threads of a trainer on the
// CPU meet at a barrier every few microseconds, and a worker on one of their CPUs would delay all of them.
void bind_to_last_cpus(int count) {
  cpu_set_t allowed, kept;
  if (count <= 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_ZERO(&kept);
  for (unsigned cpu = CPU_SETSIZE; cpu-- > 0 && count > 0;) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &kept);
    --count;
  }
  sched_setaffinity(0, sizeof(kept), &kept);
}

// Reads the index of the next posted slot; false at the end of the jobs. Workers share the pipe without a
// lock: tokens are written and read whole, so the kernel never splits one.
bool next_token(int jobs, std::int32_t& token) {
  ssize_t got;
  do got = ::read(jobs, &token, sizeof(token));
  while (got < 0 && errno == EINTR);
  if (got < 0) fail("[worker] cannot read jobs: {}", errno_message(errno));
  return got == sizeof(token);
}

// False: the trainer is gone.
bool notify_trainer(const PipeQueue& results, std::int32_t slot) try {
  results.put(std::as_bytes(std::span(&slot, 1)));
  return true;
} catch (const Error&) {
  return false;
}

int parse_argument(const std::string& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && end == text.data() + text.size() && number >= 0,
        "[worker] expected to be started by a loader, got the argument '{}'", text);
  return number;
}

// The kernel kills this process when its parent ends, however it ends. The parent may have ended before
// prctl() took effect, hence the check.
void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return message_of(error);
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

void report_exception(const Ring& ring, std::int32_t sample, const PipeQueue& results) {
  ring.report_failure(sample, exception_text());
  notify_trainer(results, -1);
}

bool fill_slot(const WorkerTask& task, int slot) {
  const Ring& ring = task.ring;
  const RingSetup& setup = ring.setup();
  const BlockJob job = ring.slot(slot).job;
  const std::int64_t image_bytes = setup.image.bytes();
  WorkerStatus& status = ring.status(task.worker);
  std::uint64_t progress = status.progress.load(std::memory_order_relaxed);
  std::uint8_t* out = ring.images(slot);
  std::int32_t *samples = ring.samples(slot), *labels = ring.labels(slot);
  BatchPlan plan = setup.plan;
  if (task.balanced.classes > 0) plan.balanced = task.balanced;
  BlockOrder order(plan, job.epoch);
  const SkippedSamples is_skipped(ring, *task.reader);
  BadSample bad;
  std::int64_t next_position = order.global_position(job.first);
  detail::Draw next = order.at(next_position);
  for (std::int64_t i = 0; i < job.count; ++i, out += image_bytes) {
    std::int64_t position = next_position;
    detail::Draw draw = next;
    if (i + 1 < job.count) {
      next_position = order.global_position(job.first + i + 1);
      task.reader->prefetch((next = order.at(next_position)).sample);
    }
    for (std::int64_t tried = 0;; draw = order.at(position = order.after(position))) {
      if (ring.stopped()) return false;
      const std::int32_t sample = draw.sample;
      samples[i] = sample;
      if (!is_skipped(sample)) {
        status.sample.store(sample, std::memory_order_release);
        status.progress.store(++progress, std::memory_order_release);
        if (task.before_sample) task.before_sample(sample);
        labels[i] = task.reader->label(sample);
        const RandomKey key{.seed = setup.plan.transform_seed(),
                            .epoch = static_cast<std::uint32_t>(job.epoch),
                            .sample = draw.key};
        if (task.reader->read(sample, key, out, bad)) break;
        report_bad(ring, bad);
      }
      if (!setup.plan.replace_unreadable) {
        labels[i] = no_label;
        std::memset(out, 0, static_cast<std::size_t>(image_bytes));
        break;
      }
      check(++tried < setup.plan.samples,
            "expected photographs that can be read, got none in {} files, the last: {}", setup.plan.samples,
            bad.reason);
    }
  }
  status.sample.store(-1, std::memory_order_release);
  return true;
}

void run_worker_loop(const WorkerTask& task) {
  bind_to_last_cpus(task.ring.setup().cpus);
  const ThreadLimit one_thread(1);
  const Ring& ring = task.ring;
  ring.status(task.worker).ready.store(1, std::memory_order_release);
  try {
    for (std::int32_t slot = 0; next_token(task.jobs, slot) && !ring.stopped();) {
      if (slot < 0 || slot >= ring.setup().slots || !ring.claim(slot, task.worker)) continue;
      if (!fill_slot(task, slot)) return;
      if (ring.finish(slot, task.worker) && !notify_trainer(*task.results, slot)) return;
    }
  } catch (...) {
    report_exception(ring, ring.status(task.worker).sample.load(), *task.results);
  }
}

std::vector<std::string> worker_arguments(const WorkerFiles& files, int worker) {
  std::vector<std::string> arguments{"worker"};
  for (const int argument : {static_cast<int>(::getpid()), worker, files.ring, files.data, files.jobs,
                             files.results.write, files.results.lock})
    arguments.push_back(std::to_string(argument));
  return arguments;
}

// This process's environment, without the variables that make libraries start or bind threads when they are
// loaded, and without those that make this process a rank (dist/launch.cpp): a worker is none.
std::vector<std::string> worker_environment() {
  constexpr std::string_view dropped[] = {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "OMP_PROC_BIND=",
                                          "OMP_PLACES=",      "GOMP_CPU_AFFINITY=",    "TANDEM_RANK",
                                          decoder_variable};
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (std::none_of(std::begin(dropped), std::end(dropped),
                     [&](std::string_view start) { return text.starts_with(start); }))
      all.emplace_back(text);
  }
  all.emplace_back("OMP_NUM_THREADS=1");
  all.emplace_back("OPENBLAS_NUM_THREADS=1");
  all.emplace_back(std::string(worker_marker) + "=1");
  all.emplace_back(std::string(own_operations_variable) + "=" + detail::describe_own_operations());
  if (const ImageDecoder* const decoder = image_decoder())
    all.emplace_back(std::string(decoder_variable) + "=" + std::to_string(decoder->max_pixels()));
  return all;
}

namespace {

// `values`: of the process that started it, of the worker, and the files of WorkerFiles.
int run_started_worker(const std::vector<int>& values, const BeforeSample& before_sample) {
  const int worker = values[1];
  const SharedMemory memory(Descriptor(values[2]), SharedMemory::Access::read_write);
  const SharedMemory data(Descriptor(values[3]), SharedMemory::Access::read);
  const Descriptor jobs(values[4]);
  const PipeQueue results(PipeQueueEnds{.write = values[5], .lock = values[6]});
  const Ring ring = Ring::attach(memory.bytes());
  const RingSetup& setup = ring.setup();
  check(worker < setup.workers, "[worker] expected a worker index below {}, got {}", setup.workers, worker);
  std::unique_ptr<SampleReader> reader;
  ClassLists classes;
  try {
    const char* const operations = std::getenv(own_operations_variable);
    if (setup.transform.cpu_only()) detail::attach_own_operations(operations ? operations : "");
    reader = detail::attach_reader({.format = setup.format,
                                    .transform = setup.transform,
                                    .size = setup.image,
                                    .samples = setup.plan.samples},
                                   data.bytes());
    if (setup.plan.balanced.classes > 0)
      classes = ClassLists(setup.plan.samples,
                           [&](std::int64_t i) { return reader->label(static_cast<std::int32_t>(i)); });
  } catch (...) {  // of a user's factory or plugin, for example: starting the worker again would not help
    report_exception(ring, -1, results);
    return 1;
  }
  run_worker_loop({.ring = ring,
                   .reader = reader.get(),
                   .worker = worker,
                   .jobs = jobs.get(),
                   .results = &results,
                   .before_sample = before_sample,
                   .balanced = classes.table()});
  return 0;
}

}  // namespace

int run_worker(const std::vector<std::string>& arguments, const BeforeSample& before_sample) {
  std::string speaker = "tandem: error";
  try {
    check(arguments.size() == 8, "[worker] expected to be started by a loader, got {} arguments",
          arguments.size());
    std::vector<int> values;
    for (std::size_t i = 1; i < arguments.size(); ++i) values.push_back(parse_argument(arguments[i]));
    die_with_parent(values[0]);
    // The loader replaces a worker that cannot start: that is no error of the run.
    speaker = fmt::format("worker {} (process {})", values[1], ::getpid());
    return run_started_worker(values, before_sample);
  } catch (...) {
    print_message("{}: {}\n", speaker, exception_text());
    return 1;
  }
}

}  // namespace tandem
