"""NumPy training a perceptron in f32: hand-written sigmoid, cross-entropy and plain SGD into preallocated arrays. Products
use the threads of NumPy's BLAS; if threadpoolctl is installed, the best thread count is used."""
import measure


class Perceptron:
    """Weights as (inputs, outputs), so that a layer is x @ w + b."""

    def __init__(self, layers, batch, dtype):
        import numpy as np
        rng, pairs = np.random.default_rng(2), list(zip(layers, layers[1:]))
        sample = lambda shape, inputs: (rng.uniform(-1, 1, shape) / np.sqrt(inputs)).astype(dtype)
        self.weights = [sample(pair, pair[0]) for pair in pairs]
        self.biases = [sample(outputs, inputs) for inputs, outputs in pairs]
        self.values = [np.empty((batch, size), dtype) for size in layers[1:]]
        self.deltas = [np.empty_like(value) for value in self.values]
        self.slopes = [np.empty_like(value) for value in self.values]
        self.updates = [np.empty_like(weight) for weight in self.weights]
        self.rows = np.arange(batch)

    def forward(self, x):
        """Leaves the class probabilities in self.values[-1]."""
        import numpy as np
        last = self.values[-1]
        for w, b, z in zip(self.weights, self.biases, self.values):
            np.matmul(x, w, out=z)
            z += b
            if z is not last:
                np.negative(z, out=z)
                np.exp(z, out=z)
                z += 1
                np.reciprocal(z, out=z)
            x = z
        last -= last.max(axis=1, keepdims=True)
        np.exp(last, out=last)
        last /= last.sum(axis=1, keepdims=True)

    def loss(self, x, y):
        import numpy as np
        self.forward(x)
        return -float(np.log(self.values[-1][self.rows, y]).mean())

    def step(self, x, y, rate):
        import numpy as np
        self.forward(x)
        delta = self.deltas[-1]
        np.copyto(delta, self.values[-1])
        delta[self.rows, y] -= 1
        delta *= rate / len(x)  # gradients are scaled by the learning rate
        for i in reversed(range(len(self.weights))):
            below = self.values[i - 1] if i else x
            if i:
                np.matmul(self.deltas[i], self.weights[i].T, out=self.deltas[i - 1])
                np.subtract(1, below, out=self.slopes[i - 1])
                self.slopes[i - 1] *= below
                self.deltas[i - 1] *= self.slopes[i - 1]
            np.matmul(below.T, self.deltas[i], out=self.updates[i])
            self.weights[i] -= self.updates[i]
            self.biases[i] -= self.deltas[i].sum(axis=0)


def check_gradient(layers, x, y, rate=1e-6):
    """In f64 a tiny step lowers the loss by rate · |gradient|² = |step|² / rate."""
    net = Perceptron(layers, len(x), "f8")
    before, old = net.loss(x, y), [array.copy() for array in net.weights + net.biases]
    net.step(x, y, rate)
    length = sum(float(((a - b) ** 2).sum()) for a, b in zip(net.weights + net.biases, old))
    if not abs((before - net.loss(x, y)) * rate / length - 1) < 1e-3:
        raise RuntimeError("the gradient is wrong")


def in_threads(run):
    """-> [run() for each number of BLAS threads that can be set]."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return [run()]
    results = []
    for threads in measure.thread_counts():
        with threadpool_limits(threads):
            results.append(run())
    return results


def run(work, device, budget_s):
    images, labels = measure.training_data(work)
    check_gradient(work.layers, images[:8].astype("f8"), labels[:8])

    def time_it():
        net = Perceptron(work.layers, work.batch, "f4")
        batch = lambda i: (images[i * work.batch:(i + 1) * work.batch], labels[i * work.batch:(i + 1) * work.batch])
        return measure.time_training(work, lambda i: net.step(*batch(i), measure.RATE), lambda i: net.loss(*batch(i)), budget_s)

    yield "NumPy", min(in_threads(time_it), key=lambda result: result["median_ms"])


measure.run("NumPy", run)
