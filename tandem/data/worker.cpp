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
#include "tandem/data/block_order.h"
#include "tandem/data/shared_memory.h"

namespace tandem {
namespace {

// Black, and of no class: what cannot be read where nothing may take its place.
constexpr std::int32_t no_label = -1;

// What a worker leaves out: samples that killed others, and photographs known to be bad before anything was
// drawn. One that a worker found bad is tried again, for which box of it can be read is a matter of the draw,
// and what comes of a position must not depend on who met what before.
class LeftOut {
 public:
  LeftOut(const Ring& ring, const ImageMaker& maker) : maker_(maker), poisoned_(ring.poisoned()) {}

  bool operator()(std::int32_t sample) const {
    return std::find(poisoned_.begin(), poisoned_.end(), sample) != poisoned_.end() ||
           maker_.is_missing(sample);
  }

 private:
  const ImageMaker& maker_;
  std::span<const std::int32_t> poisoned_;
};

// A photograph is found to be bad.
void report_bad(const Ring& ring, std::int32_t sample, const std::string& reason) {
  check(!ring.setup().fail_on_bad_photo, "{}", reason);
  check(ring.add_bad(sample, reason),
        "expected photographs that can be read, but this is the {}th that cannot: {}", most_bad + 1, reason);
}

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

// The data of a process worker: photographs, or labels and then images.
std::unique_ptr<ImageMaker> maker_of(const RingSetup& setup, std::span<const std::byte> data) {
  if (setup.photos) {
    const PhotoTable photos = PhotoTable::attach(data);
    check(photos.count() >= setup.plan.samples, "[worker] expected {} photographs, got {}",
          setup.plan.samples, photos.count());
    return photo_maker(setup, photos);
  }
  const std::int64_t label_bytes = 4 * setup.plan.samples;
  check(static_cast<std::int64_t>(data.size()) >= label_bytes + setup.plan.samples * setup.image.bytes(),
        "[worker] expected {} images, got {} bytes", setup.plan.samples, data.size());
  return array_maker(setup, reinterpret_cast<const std::uint8_t*>(data.data() + label_bytes),
                     reinterpret_cast<const std::int32_t*>(data.data()));
}

}  // namespace

std::string describe_sample(std::int32_t sample) {
  return fmt::format("sample {} of the training images", sample);
}

bool fill_slot(const WorkerTask& task, int slot) {
  const Ring& ring = task.ring;
  const RingSetup& setup = ring.setup();
  const BlockJob job = ring.slot(slot).job;
  const std::int64_t image_bytes = setup.image.bytes();
  WorkerStatus& status = ring.status(task.number);
  std::uint64_t progress = status.progress.load(std::memory_order_relaxed);
  std::uint8_t* out = ring.images(slot);
  std::int32_t *samples = ring.samples(slot), *labels = ring.labels(slot);
  BlockOrder order(setup.plan, job.epoch);
  const LeftOut left_out(ring, *task.maker);
  std::string reason;
  std::int32_t next = order.at(job.first);
  for (std::int64_t i = 0; i < job.count; ++i, out += image_bytes) {
    std::int64_t position = job.first + i;
    std::int32_t sample = next;
    if (i + 1 < job.count) task.maker->fetch_ahead(next = order.at(position + 1));
    for (std::int64_t tried = 0;; sample = order.at(position = order.after(position))) {
      if (ring.stopped()) return false;
      samples[i] = sample;
      if (!left_out(sample)) {
        status.sample.store(sample, std::memory_order_release);
        status.progress.store(++progress, std::memory_order_release);
        if (task.before_sample) task.before_sample(sample);
        labels[i] = task.maker->label(sample);
        const DrawKey key{.seed = setup.plan.seed,
                          .epoch = static_cast<std::uint32_t>(job.epoch),
                          .sample = static_cast<std::uint32_t>(sample)};
        if (task.maker->make(key, out, reason)) break;
        report_bad(ring, sample, reason);
      }
      if (!setup.plan.shuffle) {
        labels[i] = no_label;
        std::memset(out, 0, static_cast<std::size_t>(image_bytes));
        break;
      }
      check(++tried < setup.plan.samples,
            "expected photographs that can be read, got none in {} files, the last: {}", setup.plan.samples,
            reason);
    }
  }
  status.sample.store(-1, std::memory_order_release);
  return true;
}

void work(const WorkerTask& task) {
  keep_to_last(task.ring.setup().cpus);
  const ThreadLimit one_thread(1);
  const Ring& ring = task.ring;
  ring.status(task.number).ready.store(1, std::memory_order_release);
  try {
    for (std::int32_t slot = 0; next_token(task.jobs, slot) && !ring.stopped();) {
      if (slot < 0 || slot >= ring.setup().slots || !ring.claim(slot, task.number)) continue;
      if (!fill_slot(task, slot)) return;
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
  const std::unique_ptr<ImageMaker> maker = maker_of(setup, data.bytes());
  work({.ring = ring,
        .maker = maker.get(),
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
