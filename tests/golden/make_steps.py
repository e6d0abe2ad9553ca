"""Stored cases for the options of the training step, from PyTorch in f64: ten steps of a small perceptron and of a small
convolutional network without batch norm, and losses of mixed labels with class weights.

params["op"] is "steps" or "mixed". A case of steps holds "images" (u8, n × 8 × 8 × 1; the network gets pixel / 255), "labels",
"initial.NAME" of every parameter, and "weights", one row per step: all parameters after that step in the order of
params["parameters"]; with an average also "averages". Batches are consecutive images.

    python3 tests/golden/make_steps.py
"""
import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel

from store import Store

store = Store("steps")
rng = np.random.default_rng(18)
STEPS = 10
CLASSES = 3


def normal(*shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32).astype(np.float64)


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 6)
        self.last = torch.nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x.flatten(1))))


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.fc = torch.nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.fc(torch.relu(self.conv2(torch.relu(self.conv1(x)))).mean((2, 3)))


def focal(logits, labels, gamma, weight):
    """Lin et al. for a softmax; with class weights the weighted mean, so that gamma 0 is CrossEntropyLoss(weight)."""
    cross_entropy = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    row_weight = torch.ones_like(cross_entropy) if weight is None else weight[labels]
    return ((1 - torch.exp(-cross_entropy)) ** gamma * cross_entropy * row_weight).sum() / row_weight.sum()


def groups_of(model, lr, decay):
    """The last layer has the full rate, each stage before it `decay` times that of the next."""
    stages = [[*child.parameters()] for child in model.children()]
    return [dict(params=stage, lr=lr * decay ** (len(stages) - 1 - i)) for i, stage in enumerate(stages)]


def steps(name, model_class, optimizer, hyper, *, batch=8, class_weights=None, label_smoothing=0.0, focal_gamma=None, clip_norm=None,
          ema=None, stage_lr_decay=None, accumulate=1, frozen=0):
    model = model_class().double()
    count = STEPS * batch
    images = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    labels = rng.choice(CLASSES, count, p=[0.6, 0.3, 0.1]).astype(np.int32)
    arrays = dict(images=images, labels=labels)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            scale = 0.5 if parameter.ndim == 4 else 0.25
            parameter.copy_(torch.tensor(normal(*parameter.shape, scale=scale)))
            arrays[f"initial.{key}"] = parameter.numpy().copy()
    for child in [*model.children()][:frozen]:
        child.requires_grad_(False)
    lr = hyper["lr"]
    rest = {k: v for k, v in hyper.items() if k != "lr"}
    made = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer]
    chosen = made(groups_of(model, lr, 1 if stage_lr_decay is None else stage_lr_decay), lr=lr, **rest)
    average = None
    if ema is not None:
        average = AveragedModel(model, avg_fn=lambda mean, new, _: ema * mean + (1 - ema) * new)
        average.n_averaged += 1  # it begins with the initial weights, as timm's ModelEmaV2 does
    weight = None if class_weights is None else torch.tensor(class_weights, dtype=torch.float64)
    x = torch.tensor(images.astype(np.float64) / 255).permute(0, 3, 1, 2)
    y = torch.tensor(labels.astype(np.int64))
    weights, averages = [], []
    for step in range(STEPS):
        rows = slice(step * batch, (step + 1) * batch)
        chosen.zero_grad()
        for part_x, part_y in zip(x[rows].chunk(accumulate), y[rows].chunk(accumulate)):
            if focal_gamma is not None:
                loss = focal(model(part_x), part_y, focal_gamma, weight)
            else:
                loss = torch.nn.CrossEntropyLoss(weight=weight, label_smoothing=label_smoothing)(model(part_x), part_y)
            (loss * len(part_y) / batch).backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        chosen.step()
        if average:
            average.update_parameters(model)
            averages.append(np.concatenate([p.detach().numpy().ravel() for p in average.parameters()]))
        weights.append(np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
    arrays["weights"] = np.array(weights)
    if average:
        arrays["averages"] = np.array(averages)
    store.add(f"steps {name}", arrays, op="steps", network=model_class.__name__, parameters=[k for k, _ in model.named_parameters()],
              optimizer=optimizer, hyper=hyper, batch=batch, class_weights=class_weights or [], label_smoothing=label_smoothing,
              focal_gamma=-1 if focal_gamma is None else focal_gamma, clip_norm=clip_norm or 0, ema=ema or 0,
              stage_lr_decay=stage_lr_decay or 1, accumulate=accumulate, frozen=frozen)


def mixed(rows, classes, smoothing):
    """A mixture of two labels as a target of probabilities, with class weights."""
    x = torch.tensor(normal(rows, classes), requires_grad=True)
    first, second = (torch.tensor(rng.integers(0, classes, rows)) for _ in range(2))
    share = 0.3
    weight = torch.tensor(np.abs(normal(classes)) + 0.25)
    hot = torch.nn.functional.one_hot
    target = share * hot(first, classes).double() + (1 - share) * hot(second, classes).double()
    loss = torch.nn.functional.cross_entropy(x, target, weight=weight, label_smoothing=smoothing)
    loss.backward()
    store.add(f"mixed {rows}x{classes} smoothing={smoothing}",
              dict(x=x.detach().numpy(), first=first.numpy(), second=second.numpy(), class_weights=weight.numpy(),
                   grad_out=np.array(1.0), expected=loss.detach().numpy(), grad_x=x.grad.numpy()), op="mixed", share=share, label_smoothing=smoothing)


sgd, momentum, adamw = dict(lr=0.2), dict(lr=0.05, momentum=0.9), dict(lr=0.01, weight_decay=0.05)
rare = [0.5, 1.0, 4.0]
for network in (Perceptron, Convolutions):
    kind = network.__name__.lower()
    steps(f"{kind} class weights", network, "sgd", sgd, class_weights=rare)
    steps(f"{kind} class weights, one 0, smoothed", network, "sgd", momentum, class_weights=[1.0, 0.0, 2.5], label_smoothing=0.1)
    steps(f"{kind} focal", network, "sgd", sgd, focal_gamma=2.0)
    steps(f"{kind} focal 0.5 and class weights", network, "adamw", adamw, focal_gamma=0.5, class_weights=rare)
    steps(f"{kind} clipped", network, "sgd", momentum, clip_norm=0.1)
    steps(f"{kind} clipped, adamw", network, "adamw", adamw, clip_norm=0.05)
    steps(f"{kind} not clipped, large norm", network, "sgd", sgd, clip_norm=1e6)
    steps(f"{kind} average", network, "sgd", momentum, ema=0.9)
    steps(f"{kind} average, adamw, clipped", network, "adamw", adamw, ema=0.5, clip_norm=0.2)
    steps(f"{kind} accumulated", network, "sgd", momentum, batch=32, accumulate=4)
for smoothing in (0.0, 0.2):
    mixed(5, 4, smoothing)
    mixed(3, 40, smoothing)
steps("stage rates", Convolutions, "sgd", momentum, stage_lr_decay=0.5)
steps("stage rates, adam", Convolutions, "adam", dict(lr=0.01), stage_lr_decay=0.75)
steps("stage rates, adamw", Convolutions, "adamw", adamw, stage_lr_decay=0.3)
steps("one stage frozen", Convolutions, "sgd", momentum, frozen=1)
steps("one stage frozen, stage rates, clipped", Convolutions, "adamw", adamw, frozen=1, stage_lr_decay=0.5, clip_norm=0.05)
store.write()
