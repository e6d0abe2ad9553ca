"""What every peer shares: reading a case, making its inputs, timing, checking a corner of the result, printing a JSON line.

A peer is a script `peer_NAME.py DEVICE BUDGET_S STUDY:CASE ... [--OPTION ...]`; run(measure) below calls measure(work, device, budget_s) for each
case and prints what it yields: {"peer", "study", "case", "median_ms", "min_ms", "max_ms"}, or in place of the times a sentence under
"skipped" or "failed"; {"peer", "missing"} when a package is not there.
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
Folder = namedtuple("Folder", "study case side decoding")
Plates = namedtuple("Plates", "study case epochs")
PHOTOGRAPHS = {"resnet": (r"(train|train-head|infer) (fp32|tf32|bf16) (\d+)", "train bf16 256", Residual),
               "folder": (r"(\d+)x\d+ (exact|scaled)", "500x500 exact", Folder),
               "plates": (r"34\+8 480x480 (\d+) epochs", "34+8 480x480 100 epochs", Plates)}
SAMPLES = 60000  # of an epoch of training; the times of augmentation are those of as many images
AUGMENT_BOUNDS = (12, 2, 0.15, 0.1)  # Tandem's recipe `digits`: ± degrees, ± pixels both ways, ± tilt, noise up to
RATE = 0.1       # the learning rate of training
SETS = 3    # sets of inputs on the GPU, used in turn, so that its L2 cache does not serve the inputs
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


def inputs(work):
    """The study's inputs as NumPy arrays: two matrices, one matrix, or an image and a kernel."""
    import numpy as np
    rng, dtype, shape = np.random.default_rng(1), numpy_dtype(work), (work.rows, work.columns)

    def draw(size):
        if np.issubdtype(dtype, np.integer):
            return rng.integers(0, 256, size, dtype=np.uint8).astype(dtype)
        return (2 * rng.random(size, dtype=dtype) - 1).astype(dtype)

    return {"max": lambda: (draw(shape), draw(shape)), "xxt": lambda: (draw(shape),),
            "correlation": lambda: (draw(shape), draw(work.kernel))}[work.study]()


def check_corner(work, given, result, side=8):
    """Compares the result's first side x side values with the definition in f64; raises when they disagree."""
    import numpy as np
    h, w = min(side, result.shape[0]), min(side, result.shape[1])
    if work.study == "max":
        expected, scale = np.maximum(given[0][:h, :w], given[1][:h, :w]).astype(np.float64), 1.0
    elif work.study == "xxt":
        x = given[0][:side].astype(np.float64)
        expected, scale = (x @ x.T)[:h, :w], work.columns ** 0.5
    else:
        (kh, kw), image = work.kernel, given[0][:side + work.kernel[0], :side + work.kernel[1]].astype(np.float64)
        padded = np.pad(image, ((kh // 2, kh), (kw // 2, kw)))
        expected, scale = sum(given[1][i, j].astype(np.float64) * padded[i:i + h, j:j + w] for i in range(kh) for j in range(kw)), kh
    tolerance = {"tf32": 2e-2, "f32": 1e-4, "f64": 1e-9}.get(work.dtype, 0.0) * scale
    error = np.max(np.abs(np.asarray(result[:h, :w], np.float64) - expected))
    if not error <= tolerance:
        raise RuntimeError(f"wrong result for {work.study} {work.case}: off by {error:g}, {tolerance:g} allowed")


def summary(samples_ms):
    return {"median_ms": statistics.median(samples_ms), "min_ms": min(samples_ms), "max_ms": max(samples_ms)}


def time_cpu(call, budget_s, repeat=1):
    """Wall time of one call (of `repeat` equal passes): one to warm up (the check of the corner was another), then as many as
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
    """From the times of so many samples to those of SAMPLES."""
    return {name: value * SAMPLES / samples for name, value in figures.items()}


def training_data(work):
    """Random images, a row each, and labels."""
    import numpy as np
    rng = np.random.default_rng(1)
    return rng.random((SAMPLES, work.layers[0]), dtype=np.float32), rng.integers(0, work.layers[-1], SAMPLES)


def time_training(work, step, loss, budget_s, finish=lambda: None):
    """Time of an epoch of SAMPLES samples, from passes of up to 400 steps that go round the data. step(i) trains on the i-th batch,
    loss(i) is the loss there, finish() waits for the device."""
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
    """Median over 50 samples and more; a sample is BATCH launches, going round the sets in `calls`, between two events.
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


def run(peer, measure):
    """Measures every case named on the command line with measure(work, device, budget_s) -> iterable of (peer name, result), a result
    being a summary or a sentence that says why the case was left out. A case that fails does not keep the next from running."""
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
