"""Shared by all peers: parsing a case, timing, printing a JSON line.

A peer is a script `peer_NAME.py DEVICE BUDGET_S STUDY:CASE ... [--OPTION ...]`; run(measure) below calls measure(work, device, budget_s) for each
case and prints what it yields: {"peer", "study", "case", "median_ms", "min_ms", "max_ms"}, or a sentence under
"skipped" or "failed" instead of the times; {"peer", "missing"} if a package is not installed.
"""
import itertools
import json
import os
import re
import statistics
import sys
import time
from collections import namedtuple

Work = namedtuple("Work", "study case rows columns dtype kernel")  # kernel: (rows, columns) or None
Training = namedtuple("Training", "study case layers precision batch")
Augmenting = namedtuple("Augmenting", "study case rows columns batch")
Residual = namedtuple("Residual", "study case what precision batch")  # what: train, train-head, infer
Residual50 = namedtuple("Residual50", "study case what precision batch model", defaults=["resnet50"])
Mobile = namedtuple("Mobile", "study case model what precision batch")
Folder = namedtuple("Folder", "study case side decoding")
Plates = namedtuple("Plates", "study case epochs")
PHOTOGRAPHS = {"resnet": (r"(train|train-head|infer) (fp32|tf32|bf16|int8) (\d+)", "train bf16 256", Residual),
               "resnet50": (r"(train|infer) (fp32|tf32|bf16) (\d+)", "train bf16 256", Residual50),
               "mobile": (r"(mobilenet_v3_small|mobilenet_v3_large|efficientnet_b0) (train|infer) (fp32|tf32|bf16) (\d+)",
                          "mobilenet_v3_large train bf16 256", Mobile),
               "folder": (r"(\d+)x\d+ (exact|scaled)", "500x500 exact", Folder),
               "plates": (r"34\+8 480x480 (\d+) epochs", "34+8 480x480 100 epochs", Plates)}
SAMPLES = 60000  # per training epoch; augmentation times are for the same number of images
AUGMENT_BOUNDS = (12, 2, 0.15, 0.1)  # ± degrees, ± pixels in x and y, ± tilt, maximum noise
RATE = 0.1       # the learning rate of training
SETS = 3    # sets of inputs on the GPU, used in rotation so that they are not in the L2 cache
BATCH = 20  # GPU calls between two events, 5 when one takes over 1 ms; the time is divided by it


def cores():
    return len(os.sched_getaffinity(0))


def thread_counts():
    """1, 2, 4, … and all cores."""
    return sorted({min(1 << k, cores()) for k in range(cores().bit_length() + 1)})


def parse(text):
    study, case = text.split(":", 1)
    if study == "train":
        match = re.fullmatch(r"(\d+(?:,\d+)+) (fp32|tf32|bf16) (\d+)", case)
        if not match:
            raise SystemExit(f"expected a case like '784,200,10 fp32 16', got '{case}'")
        return Training(study, case, [int(size) for size in match[1].split(",")], match[2], int(match[3]))
    if study == "augment":
        match = re.fullmatch(r"(\d+)x(\d+) digits (\d+)(?: threads| processes)?", case)
        if not match:
            raise SystemExit(f"expected a case like '28x28 digits 65536', got '{case}'")
        return Augmenting(study, case, *(int(number) for number in match.groups()))
    if study in PHOTOGRAPHS:
        pattern, example, make = PHOTOGRAPHS[study]
        match = re.fullmatch(pattern, case)
        if not match:
            raise SystemExit(f"expected a case like '{example}', got '{case}'")
        return make(study, case, *(int(part) if part.isdigit() else part for part in match.groups()))
    match = re.fullmatch(r"(\d+)x(\d+) (\w+)(?: (\d+)x(\d+))?", case)
    if not match:
        raise SystemExit(f"expected a case like '4096x4096 f32 3x3', got '{case}'")
    rows, columns, dtype, kh, kw = match.groups()
    return Work(study, case, int(rows), int(columns), dtype, (int(kh), int(kw)) if kh else None)


def numpy_dtype(work):
    import numpy as np
    return {"i32": np.int32, "i64": np.int64, "u8": np.uint8, "f32": np.float32, "f64": np.float64, "tf32": np.float32}[work.dtype]


def summary(samples_ms):
    return {"median_ms": statistics.median(samples_ms), "min_ms": min(samples_ms), "max_ms": max(samples_ms)}


def time_cpu(call, budget_s, repeat=1):
    """Wall time of one call, divided by its `repeat` equal passes: one warm-up call, then as many as
    the budget allows, 3 to 201."""
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    samples = []
    for _ in range(int(min(201, max(3, budget_s / once)))):
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1e3 / repeat)
    return summary(samples)


def of_all_samples(figures, samples):
    """Scales times of `samples` samples to SAMPLES."""
    return {name: value * SAMPLES / samples for name, value in figures.items()}


def training_data(work):
    """Random images, one per row, and labels."""
    import numpy as np
    rng = np.random.default_rng(1)
    return rng.random((SAMPLES, work.layers[0]), dtype=np.float32), rng.integers(0, work.layers[-1], SAMPLES)


def time_training(work, step, loss, budget_s, finish=lambda: None):
    """Time of an epoch of SAMPLES samples, from passes of up to 400 steps that cycle through the data. step(i) trains on the i-th
    batch, loss(i) returns its loss, finish() waits for the device."""
    before = loss(0)
    step(0)
    if not abs(loss(0) - before) > 0:  # false for NaN too
        raise RuntimeError(f"a step of {work.case} does not change the loss, or makes it NaN")
    batches, position = SAMPLES // work.batch, itertools.count()
    steps = min(batches, 400)

    def some_steps():
        for _ in range(steps):
            step(next(position) % batches)
        finish()
    return time_cpu(some_steps, budget_s, steps * work.batch / SAMPLES)


def time_gpu(calls, budget_s, new_event, elapsed_ms):
    """Median over at least 50 samples; a sample is BATCH launches between two events, rotating through the sets in `calls`.
    new_event() records an event on the current stream and returns it; elapsed_ms(a, b) waits for b."""
    def sample(launches):
        start = new_event()
        for i in range(launches):
            calls[i % len(calls)]()
        return elapsed_ms(start, new_event()) / launches

    for _ in range(3):
        once = sample(BATCH)
    launches = BATCH if once < 1 else 5
    return summary([sample(launches) for _ in range(int(min(400, max(50, budget_s * 1e3 / (once * launches)))))])


def time_torch(calls, budget_s):
    """time_gpu() with PyTorch's events."""
    import torch

    def new_event():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(start, end):
        end.synchronize()
        return start.elapsed_time(end)

    return time_gpu(calls, budget_s, new_event, elapsed_ms)


def run(peer, measure):
    """Measures every case named on the command line with measure(work, device, budget_s) -> iterable of (peer name, result), a result
    being a summary or the reason why the case was skipped. A case that fails does not prevent the next from running."""
    device, budget_s, cases = sys.argv[1], float(sys.argv[2]), [text for text in sys.argv[3:] if not text.startswith("--")]
    for work in map(parse, cases):
        row = {"peer": peer, "study": work.study, "case": work.case}
        try:
            for name, result in measure(work, device, budget_s):
                found = {"skipped": result} if isinstance(result, str) else result
                print(json.dumps({**row, "peer": name, **found}), flush=True)
        except ImportError as error:
            print(json.dumps({"peer": peer, "missing": str(error)}), flush=True)
            return
        except Exception as error:
            text = (str(error).splitlines() or [""])[0]
            print(json.dumps({**row, "failed": f"{type(error).__name__}: {text[:160]}"}), flush=True)
