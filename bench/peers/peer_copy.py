"""The bandwidth limit: a copy that moves the same bytes as the case (maximum reads two arrays and writes one, so the copy reads 1.5
and writes 1.5). On the CPU each thread copies its own band repeatedly without synchronization between passes; the faster of one
thread and all cores counts. On the GPU PyTorch copies from device to device."""
import threading

import measure


def best_copy(count, dtype, budget_s):
    import numpy as np
    source, target = np.ones(count, dtype), np.zeros(count, dtype)
    passes = max(1, int(2e8 / (2 * source.nbytes)))  # many passes per sample for small arrays, to amortize thread start
    results = []
    for threads in sorted({1, measure.cores()}):
        bands = np.linspace(0, count, threads + 1).astype(int)

        def work(first, last):
            for _ in range(passes):
                np.copyto(target[first:last], source[first:last])

        def all_threads():
            team = [threading.Thread(target=work, args=(a, b)) for a, b in zip(bands, bands[1:])]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()

        results.append(measure.time_cpu(all_threads, budget_s / 2, passes))
    if not np.array_equal(source[-8:], target[-8:]):
        raise RuntimeError("the copy is wrong")
    return min(results, key=lambda r: r["median_ms"])


def gpu_copy(count, work, budget_s):
    import torch
    dtype = {"i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "f32": torch.float32, "f64": torch.float64}[work.dtype]
    pairs = [(torch.ones(count, dtype=dtype, device="cuda"), torch.empty(count, dtype=dtype, device="cuda")) for _ in range(measure.SETS)]
    return measure.time_torch([lambda pair=pair: pair[1].copy_(pair[0]) for pair in pairs], budget_s)


def run(work, device, budget_s):
    count = int(work.rows * work.columns * {"max": 1.5, "correlation": 1.0}[work.study])
    yield "copy", best_copy(count, measure.numpy_dtype(work), budget_s) if device == "cpu" else gpu_copy(count, work, budget_s)


measure.run("copy", run)
