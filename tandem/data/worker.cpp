// The loop of a worker, and its life as a process.
#include "tandem/data/worker.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/shared_memory.h"

namespace tandem {
namespace {

// The samples of a block, one after another.
class BlockOrder {
 public:
  BlockOrder(const BatchPlan& plan, const BlockJob& job, std::span<const std::int32_t> poisoned)
      : order_{static_cast<std::uint32_t>(plan.samples), plan.seed, static_cast<std::uint32_t>(job.epoch)},
        shuffle_(order_.samples, order_.seed, order_.epoch),
        poisoned_(poisoned) {}

  std::int32_t operator()(std::int64_t position) {
    std::int32_t sample = order_(position, shuffle_, pass_);
    while (is_poisoned(sample)) {
      position = pass_ * order_.samples + (position + 1) % order_.samples;
      sample = order_(position, shuffle_, pass_);
    }
    return sample;
  }

 private:
  bool is_poisoned(std::int32_t sample) const {
    return std::find(poisoned_.begin(), poisoned_.end(), sample) != poisoned_.end();
  }

  OrderAt order_;
  Shuffle shuffle_;
  std::int64_t pass_ = 0;
  std::span<const std::int32_t> poisoned_;
};

// Binds this thread to the last so many of its CPUs; 0: to none. Beside a trainer whose threads meet every
// few microseconds, a worker on one of their CPUs would keep them all waiting.
void keep_to_last(int count) {
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

// The next slot to look at; false at the end of the jobs. Readers share the pipe without a lock: the kernel
// gives each read a whole token, for tokens are written whole and nobody reads less.
bool next_token(int jobs, std::int32_t& token) {
  ssize_t got;
  do got = ::read(jobs, &token, sizeof(token));
  while (got < 0 && errno == EINTR);
  if (got < 0) fail("[worker] cannot read jobs: {}", system_reason(errno));
  return got == sizeof(token);
}

// False: the trainer is gone, and there is nobody to hear of it.
bool tell_trainer(const PipeQueue& results, std::int32_t slot) try {
  results.put(std::as_bytes(std::span(&slot, 1)));
  return true;
} catch (const Error&) {
  return false;
}

int number_from(const std::string& word) {
  int number = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  check(error == std::errc() && end == word.data() + word.size() && number >= 0,
        "[worker] expected to be started by tandem train, got the word '{}'", word);
  return number;
}

// The kernel ends this process with its parent, however that ends; and the parent may have ended before it
// was asked to.
void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace

std::string describe_sample(std::int32_t sample) {
  return fmt::format("sample {} of the training images", sample);
}

// Asks for an image that is needed soon: in a shuffled order none is in the caches.
void fetch_ahead(const std::uint8_t* image, std::int64_t bytes) {
  constexpr std::int64_t line = 64, most = 4096;
  for (std::int64_t at = 0; at < std::min(bytes, most); at += line) __builtin_prefetch(image + at);
}

bool fill_slot(const WorkerTask& task, int slot, AugmentScratch& scratch) {
  const Ring& ring = task.ring;
  const RingSetup& setup = ring.setup();
  const BlockJob job = ring.slot(slot).job;
  const std::int64_t image_bytes = setup.image.bytes();
  WorkerStatus& status = ring.status(task.number);
  std::uint64_t progress = status.progress.load(std::memory_order_relaxed);
  std::uint8_t* out = ring.images(slot);
  std::int32_t *samples = ring.samples(slot), *labels = ring.labels(slot);
  BlockOrder order(setup.plan, job, ring.poisoned());
  std::int32_t next = order(job.first);
  for (std::int64_t i = 0; i < job.count; ++i, out += image_bytes) {
    if (ring.stopped()) return false;
    const std::int32_t sample = next;
    if (i + 1 < job.count) {
      next = order(job.first + i + 1);
      fetch_ahead(task.images + next * image_bytes, image_bytes);
    }
    status.sample.store(sample, std::memory_order_release);
    status.progress.store(++progress, std::memory_order_release);
    if (task.before_sample) task.before_sample(sample);
    samples[i] = sample;
    labels[i] = task.labels[sample];
    const std::uint8_t* in = task.images + sample * image_bytes;
    if (setup.recipe.empty())
      std::memcpy(out, in, static_cast<std::size_t>(image_bytes));
    else
      augment_image(setup.recipe, setup.image,
                    {.seed = setup.plan.seed,
                     .epoch = static_cast<std::uint32_t>(job.epoch),
                     .sample = static_cast<std::uint32_t>(sample)},
                    in, out, scratch);
  }
  status.sample.store(-1, std::memory_order_release);
  return true;
}

void work(const WorkerTask& task) {
  keep_to_last(task.ring.setup().cpus);
  const ThreadLimit one_thread(1);
  const Ring& ring = task.ring;
  AugmentScratch scratch;
  ring.status(task.number).ready.store(1, std::memory_order_release);
  try {
    for (std::int32_t slot = 0; next_token(task.jobs, slot) && !ring.stopped();) {
      if (slot < 0 || slot >= ring.setup().slots || !ring.claim(slot, task.number)) continue;
      if (!fill_slot(task, slot, scratch)) return;
      if (ring.finish(slot, task.number) && !tell_trainer(*task.results, slot)) return;
    }
  } catch (const std::exception& error) {
    ring.report_failure(ring.status(task.number).sample.load(), error.what());
    tell_trainer(*task.results, -1);
  }
}

std::vector<std::string> worker_words(const WorkerFiles& files, int number) {
  std::vector<std::string> words{"worker"};
  for (const int word : {static_cast<int>(::getpid()), number, files.ring, files.data, files.jobs,
                         files.results.write, files.results.lock})
    words.push_back(std::to_string(word));
  return words;
}

int run_worker(const std::vector<std::string>& words, const BeforeSample& before_sample) try {
  check(words.size() == 8, "[worker] expected to be started by tandem train, got {} words", words.size());
  std::vector<int> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) numbers.push_back(number_from(words[i]));
  die_with_parent(numbers[0]);
  const SharedMemory memory(Descriptor(numbers[2]), SharedMemory::Access::read_write);
  const SharedMemory data(Descriptor(numbers[3]), SharedMemory::Access::read);
  const Descriptor jobs(numbers[4]);
  const PipeQueue results(PipeQueueEnds{.write = numbers[5], .lock = numbers[6]});
  const Ring ring = Ring::attach(memory.bytes());
  const RingSetup& setup = ring.setup();
  check(numbers[1] < setup.workers, "[worker] expected a number below {}, got {}", setup.workers, numbers[1]);
  const std::int64_t label_bytes = 4 * setup.plan.samples;
  check(static_cast<std::int64_t>(data.size()) >= label_bytes + setup.plan.samples * setup.image.bytes(),
        "[worker] expected {} images, got {} bytes", setup.plan.samples, data.size());
  work({.ring = ring,
        .images = reinterpret_cast<const std::uint8_t*>(data.data() + label_bytes),
        .labels = reinterpret_cast<const std::int32_t*>(data.data()),
        .number = numbers[1],
        .jobs = jobs.get(),
        .results = &results,
        .before_sample = before_sample});
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "tandem: error: {}\n", error.what());
  return 1;
}

}  // namespace tandem
