// The kinds of workers that prepare images.
#pragma once

namespace tandem {

/// The largest number of workers.
inline constexpr int max_workers = 1024;

/// Threads start fast and share everything. Processes survive what kills a thread's program: a worker that
/// crashes or hangs is replaced, and a sample that crashes three of them is skipped. A program that uses
/// process workers calls run_worker_if_asked() first thing in main().
enum class WorkerKind { thread, process };

}  // namespace tandem
