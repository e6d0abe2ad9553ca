"""SciPy augmenting images in two worker processes: rotate and shift (cubic splines, ndimage's default), noise and skew by NumPy. Jobs are sent
through a queue, batches return through a pipe with a lock, as is common in Python."""
import multiprocessing
import random

import measure

WORKERS = 2


def augmented(image, bounds):
    import numpy as np
    from scipy import ndimage
    degrees, pixels, tilt, noise = bounds
    image = ndimage.rotate(image, random.uniform(-degrees, degrees), reshape=False)
    image = ndimage.shift(image, (random.randint(-pixels, pixels), random.randint(-pixels, pixels)))
    amount = random.uniform(0, noise)
    image = np.clip(image + np.random.uniform(-amount, amount, image.shape), 0, 1)
    y, x = np.indices(image.shape)
    source = np.floor(x + y * random.uniform(-tilt, tilt)).astype(int)
    inside = (source >= 0) & (source < image.shape[1])
    return np.where(inside, image[y, source.clip(0, image.shape[1] - 1)], 0)


def run_worker(jobs, pipe, lock, images):
    import numpy as np
    np.random.seed(None)
    random.seed()
    while (count := jobs.get()) is not None:
        chosen = random.sample(range(len(images)), count)
        batch = np.stack([augmented(images[i], measure.AUGMENT_BOUNDS) for i in chosen])
        with lock:
            pipe.send(batch)


def run(work, device, budget_s):
    import numpy as np
    images = np.random.default_rng(1).random((5000, work.rows, work.columns))
    off = np.max(np.abs(augmented(images[0], (0, 0, 0, 0)) - images[0]))
    if not off <= 1e-6:
        raise RuntimeError(f"an image that should not change differs by {off:g}")
    context = multiprocessing.get_context("fork")  # inherits the images
    jobs, lock, (receive, send) = context.Queue(), context.Lock(), context.Pipe(duplex=False)
    workers = [context.Process(target=run_worker, args=(jobs, send, lock, images), daemon=True) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    batches = max(2048 // work.batch, 2 * WORKERS)

    def some_batches():
        for _ in range(batches):
            jobs.put(work.batch)
        for _ in range(batches):
            if receive.recv().shape != (work.batch, work.rows, work.columns):
                raise RuntimeError("a batch has the wrong shape")
    try:
        yield "SciPy", measure.of_all_samples(measure.time_cpu(some_batches, budget_s), batches * work.batch)
    finally:
        for _ in workers:
            jobs.put(None)
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    measure.run("SciPy", run)
