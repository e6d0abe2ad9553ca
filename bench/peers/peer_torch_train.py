"""PyTorch training a perceptron: sigmoid, cross-entropy, plain SGD (foreach). On the CPU the best thread count is used; on the GPU,
with the data on the device, both eager steps and steps replayed from a CUDA graph are timed. In the case tf32 products may use TF32; in
bf16 the forward pass runs under autocast."""
import measure


def make_model(layers):
    from torch import nn
    modules = []
    for inputs, outputs in zip(layers, layers[1:]):
        modules += [nn.Linear(inputs, outputs), nn.Sigmoid()]
    return nn.Sequential(*modules[:-1])  # the loss takes logits


class Trainer:
    """A model with its optimizer and data on a device."""

    def __init__(self, work, device, images, labels):
        import torch
        torch.manual_seed(1)
        self.work, self.device, self.images, self.labels = work, device, images, labels
        self.model = make_model(work.layers).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), measure.RATE, foreach=True)

    def batch(self, i):
        rows = slice(i * self.work.batch, (i + 1) * self.work.batch)
        return self.images[rows], self.labels[rows]

    def loss_of(self, images, labels):
        import torch
        if self.work.precision != "bf16":
            return torch.nn.functional.cross_entropy(self.model(images), labels)
        with torch.autocast(self.device, torch.bfloat16):
            return torch.nn.functional.cross_entropy(self.model(images), labels)

    def train_on(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss_of(images, labels).backward()
        self.optimizer.step()

    def step(self, i):
        self.train_on(*self.batch(i))

    def loss(self, i):
        import torch
        with torch.no_grad():
            return self.loss_of(*self.batch(i)).item()

    def capture(self):
        """-> a step(i) that copies a batch to the graph's inputs and replays the captured step."""
        import torch
        images, labels = (tensor.clone() for tensor in self.batch(0))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # initialize the libraries before the capture
            for _ in range(3):
                self.train_on(images, labels)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.train_on(images, labels)

        def step(i):
            new_images, new_labels = self.batch(i)
            images.copy_(new_images)
            labels.copy_(new_labels)
            graph.replay()
        return step


def run(work, device, budget_s):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = work.precision == "tf32"
    images, labels = (torch.from_numpy(array).to(device) for array in measure.training_data(work))
    if device == "cpu":
        results = []
        for threads in measure.thread_counts():
            torch.set_num_threads(threads)
            trainer = Trainer(work, device, images, labels)
            results.append(measure.time_training(work, trainer.step, trainer.loss, budget_s))
        yield "PyTorch", min(results, key=lambda result: result["median_ms"])
        return
    trainer = Trainer(work, device, images, labels)
    yield "PyTorch", measure.time_training(work, trainer.step, trainer.loss, budget_s, torch.cuda.synchronize)
    trainer = Trainer(work, device, images, labels)
    yield "PyTorch graph", measure.time_training(work, trainer.capture(), trainer.loss, budget_s, torch.cuda.synchronize)


measure.run("PyTorch", run)
