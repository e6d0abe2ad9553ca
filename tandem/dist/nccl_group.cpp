#include "tandem/dist/nccl_group.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/device/on_backend.h"
#include "tandem/dist/nccl_library.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t lanes = 2;
using Communicators = std::array<NcclCommunicator*, lanes>;
using UniqueIds = std::array<NcclUniqueId, lanes>;

constexpr double connect_limit_s = 120;
// A lost rank is an error of NCCL's network first: how long the group may take to name it.
constexpr double naming_s = 3;
constexpr std::chrono::milliseconds watch_interval = 50ms, abort_limit = 10s;

std::size_t byte_count(const Tensor& tensor) {
  expect(tensor.is_contiguous());
  return static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
}

// Throws the group's failure if it comes soon.
void await_failure(Group& group) {
  for (const Stopwatch watch; watch.elapsed_ms() < 1000 * naming_s; std::this_thread::sleep_for(10ms))
    group.throw_if_failed();
}

// On a thread of its own, which is left alone when the group fails: it waits for the other ranks.
Communicators connect(Group& group, Device device, const UniqueIds& ids) {
  std::promise<Communicators> promise;
  std::future<Communicators> connected = promise.get_future();
  std::thread([device, ids, rank = group.place().rank, ranks = group.place().size,
               promise = std::move(promise)]() mutable {
    try {
      Communicators made{};
      on_backend(device, "nccl", [&]<Backend B>() {  // makes it the current device of this thread
        for (std::size_t lane = 0; lane < lanes; ++lane)
          nccl_library().require(nccl_library().comm_init_rank(&made[lane], ranks, ids[lane], rank),
                                 "ncclCommInitRank");
      });
      promise.set_value(made);
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  const Stopwatch watch;
  while (connected.wait_for(watch_interval) != std::future_status::ready) {
    group.throw_if_failed();
    check(watch.elapsed_ms() < 1000 * connect_limit_s,
          "[nccl] the GPUs of the ranks have not connected within {:g} s", connect_limit_s);
  }
  try {
    return connected.get();
  } catch (const Error&) {
    if (group.place().size > 1) await_failure(group);
    throw;
  }
}

}  // namespace

struct NcclGroup::State {
  std::timed_mutex calls;  // NCCL's functions are called by one thread at a time
  Communicators communicators{};

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool stopping = false;
  std::size_t aborted = 0;  // communicators

  std::atomic<bool> working{false};  // at other times ranks may leave, which NCCL takes for errors
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // set before `failed`
};

NcclGroup::NcclGroup(Group& group, Device device)
    : group_(group), device_(device), state_(std::make_shared<State>()) {
  const NcclLibrary& nccl = nccl_library();
  UniqueIds ids{};
  if (place().rank == 0)
    for (NcclUniqueId& id : ids) nccl.require(nccl.get_unique_id(&id), "ncclGetUniqueId");
  group.broadcast(std::as_writable_bytes(std::span(ids)), 0);
  state_->communicators = connect(group, device, ids);
  watch_ = std::thread([this] { watch(); });
}

// Nothing is under way any more, or a rank is lost: in neither case the others are waited for.
NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  watch_.join();
  if (!state_->failed) abort();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, abort_limit, [&] { return state_->aborted == lanes; });
}

// Each on a thread of its own: an abort stops the kernels at once, but returns when no graph uses the
// communicator any more.
void NcclGroup::abort() noexcept {
  for (NcclCommunicator* const communicator : state_->communicators)
    std::thread([state = state_, communicator] {
      nccl_library().comm_abort(communicator);
      {
        const std::lock_guard lock(state->mutex);
        ++state->aborted;
      }
      state->changed.notify_all();
    }).detach();
}

void NcclGroup::watch() {
  for (;;) {
    {
      std::unique_lock lock(state_->mutex);
      if (state_->changed.wait_for(lock, watch_interval, [&] { return state_->stopping; })) return;
    }
    try {
      group_.throw_if_failed();
      // While another thread is inside NCCL, it gets the error itself.
      const std::unique_lock calls(state_->calls, std::try_to_lock);
      for (std::size_t lane = 0; calls && state_->working && lane < lanes; ++lane) {
        int error = 0;
        nccl_library().comm_get_async_error(state_->communicators[lane], &error);
        if (error == 0 || error == NcclLibrary::in_progress) continue;
        await_failure(group_);
        nccl_library().require(error, "a transfer between GPUs");
      }
    } catch (...) {
      state_->failure = std::current_exception();
      state_->failed = true;
      // A thread that waits inside NCCL is released by the abort.
      const std::unique_lock calls(state_->calls, 1s);
      abort();
      return;
    }
  }
}

void NcclGroup::begin_work() {
  throw_if_failed();
  state_->working = true;
}

void NcclGroup::end_work() {
  state_->working = false;
  throw_if_failed();
}

void NcclGroup::throw_if_failed() {
  if (state_->failed) std::rethrow_exception(state_->failure);
  group_.throw_if_failed();
}

template <class Calls>
void NcclGroup::call(Calls&& calls) {
  std::unique_lock lock(state_->calls, std::defer_lock);
  do throw_if_failed();
  while (!lock.try_lock_for(watch_interval));
  throw_if_failed();
  try {
    on_backend(device_, "nccl", [&]<Backend B>() { calls(nccl_library()); });
  } catch (const Error&) {
    lock.unlock();
    if (place().size > 1) await_failure(group_);
    throw;
  }
}

void NcclGroup::exchange(Lane lane, std::span<const Transfer> sends, std::span<const Transfer> receives,
                         StreamView stream) {
  if (sends.empty() && receives.empty()) return;
  NcclCommunicator* const communicator = state_->communicators[static_cast<std::size_t>(lane)];
  call([&](const NcclLibrary& nccl) {
    nccl.require(nccl.group_start(), "ncclGroupStart");
    for (const auto& [rank, tensor] : sends)
      nccl.require(nccl.send(tensor.bytes(), byte_count(tensor), NcclLibrary::bytes, rank, communicator,
                             stream.handle),
                   "ncclSend");
    for (const auto& [rank, tensor] : receives)
      nccl.require(nccl.receive(tensor.bytes(), byte_count(tensor), NcclLibrary::bytes, rank, communicator,
                                stream.handle),
                   "ncclRecv");
    nccl.require(nccl.group_end(), "ncclGroupEnd");
  });
}

void NcclGroup::all_gather(Lane lane, const Tensor& mine, const Tensor& all, StreamView stream) {
  expect(byte_count(all) == byte_count(mine) * static_cast<std::size_t>(place().size));
  NcclCommunicator* const communicator = state_->communicators[static_cast<std::size_t>(lane)];
  call([&](const NcclLibrary& nccl) {
    nccl.require(nccl.all_gather(mine.bytes(), all.bytes(), byte_count(mine), NcclLibrary::bytes,
                                 communicator, stream.handle),
                 "ncclAllGather");
  });
}

}  // namespace tandem
