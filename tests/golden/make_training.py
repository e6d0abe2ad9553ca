"""Stored cases for training, from PyTorch in f64: losses with their gradients, and ten steps of small perceptrons.

params["op"] is "cross_entropy", "mse_loss" or "trajectory". A trajectory holds the initial weights of each linear layer
("w0", "b0", "w1", …), the batches of all steps one after another ("x", "labels", with params["batches"] their sizes) and
"weights", one row per step: all parameters after that step, flattened in the order w0, b0, w1, … Learning rates follow a schedule
that is stepped after every batch or every epoch, as PyTorch's are; "rates" and "momenta" hold what each step used. Every input
is exact in f32, so that a test in f32 starts from the same numbers and sees only its own rounding.

    python3 tests/golden/make_training.py
"""
import numpy as np
import torch
from torch.optim import lr_scheduler

from store import Store

store = Store("training")
rng = np.random.default_rng(31)
STEPS = 10


def in_f32(value):
    return np.asarray(value, np.float32).astype(np.float64)


def normal(*shape, scale=1.0):
    return in_f32(scale * rng.standard_normal(shape))


def cross_entropies():
    cases = [(1, 1, 1, 0, ""), (1, 2, 1, 0, ""), (4, 3, 1, 0, ""), (16, 10, 1, 0, ""), (5, 10, 1, 0.1, ""), (7, 33, 1, 0.3, ""), (2, 65, 1, 0, ""),
             (3, 257, 1, 0.1, ""), (4, 10, 1000, 0, "large"), (4, 10, 30, 0.2, "wide"), (1, 5, 1, 1, ""), (33, 2, 1, 0.05, "")]
    for rows, classes, scale, smoothing, detail in cases:
        x = torch.tensor(normal(rows, classes, scale=scale), requires_grad=True)
        labels = torch.tensor(rng.integers(0, classes, rows))
        loss = torch.nn.functional.cross_entropy(x, labels, label_smoothing=smoothing)
        loss.backward()
        store.add(f"cross_entropy {rows}x{classes} smoothing={smoothing} {detail}".rstrip(),
                  {"x": x.detach().numpy(), "labels": labels.numpy(), "expected": loss.detach().numpy(), "grad_x": x.grad.numpy()},
                  op="cross_entropy", label_smoothing=smoothing)


def squared_errors():
    for shape, scale in (((), 1), ((1,), 1), ((7,), 1), ((3, 5), 1), ((2, 3, 4), 1), ((16, 10), 1), ((4, 4), 100)):
        x, target = (torch.tensor(normal(*shape, scale=scale), requires_grad=True) for _ in range(2))
        loss = torch.nn.functional.mse_loss(x, target)
        loss.backward()
        store.add(f"mse_loss {'x'.join(map(str, shape)) or 'scalar'} scale={scale}",
                  {"x": x.detach().numpy(), "target": target.detach().numpy(), "expected": loss.detach().numpy(),
                   "grad_x": x.grad.numpy(), "grad_target": target.grad.numpy()}, op="mse_loss")


ACTIVATIONS = {"sigmoid": torch.nn.Sigmoid, "tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def make_schedule(optimizer, schedule, steps_per_epoch):
    """What torch.optim would be given, and whether it is stepped once an epoch rather than once a batch."""
    kind = schedule["kind"]
    if kind == "step":
        return lr_scheduler.StepLR(optimizer, schedule["step_size"], schedule["gamma"]), True
    if kind == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, schedule["epochs"], schedule["min_lr"]), True
    if kind == "one_cycle":
        max_lr = optimizer.param_groups[0]["lr"]
        return lr_scheduler.OneCycleLR(optimizer, max_lr, epochs=schedule["epochs"], steps_per_epoch=steps_per_epoch), False
    warmup = schedule["warmup_steps"]
    return lr_scheduler.LinearLR(optimizer, 1 / warmup, 1, warmup - 1), False


def trajectory(name, layers, activation, optimizer, options, batches, loss="cross_entropy", label_smoothing=0.0, schedule=None,
               steps_per_epoch=2):
    modules = []
    for i in range(len(layers) - 1):
        modules += [torch.nn.Linear(layers[i], layers[i + 1]), ACTIVATIONS[activation]()]
    if loss == "mse":
        modules[-1] = torch.nn.Sigmoid()
    else:
        modules.pop()
    model = torch.nn.Sequential(*modules).double()
    arrays, parameters = {}, []
    with torch.no_grad():
        for i, layer in enumerate(m for m in model if isinstance(m, torch.nn.Linear)):
            layer.weight.copy_(torch.tensor(normal(*layer.weight.shape, scale=0.6)))
            layer.bias.copy_(torch.tensor(normal(*layer.bias.shape, scale=0.3)))
            arrays[f"w{i}"], arrays[f"b{i}"] = layer.weight.numpy().copy(), layer.bias.numpy().copy()
            parameters += [layer.weight, layer.bias]
    sizes = [batches[i % len(batches)] for i in range(STEPS)]
    x, labels = normal(sum(sizes), layers[0]), rng.integers(0, layers[-1], sum(sizes))
    chosen = OPTIMIZERS[optimizer](model.parameters(), **options)
    scheduler, each_epoch = make_schedule(chosen, schedule, steps_per_epoch) if schedule else (None, False)
    weights, rates, momenta, begin = [], [], [], 0
    for step, size in enumerate(sizes):
        group = chosen.param_groups[0]
        rates.append(group["lr"])
        momenta.append(group["momentum"] if optimizer == "sgd" else group["betas"][0])
        batch, target = torch.tensor(x[begin:begin + size]), torch.tensor(labels[begin:begin + size])
        begin += size
        chosen.zero_grad()
        output = model(batch)
        if loss == "mse":
            value = torch.nn.functional.mse_loss(output, torch.nn.functional.one_hot(target, layers[-1]).double())
        else:
            value = torch.nn.functional.cross_entropy(output, target, label_smoothing=label_smoothing)
        value.backward()
        chosen.step()
        if scheduler and (not each_epoch or (step + 1) % steps_per_epoch == 0):
            scheduler.step()
        weights.append(np.concatenate([p.detach().numpy().ravel() for p in parameters]))
    arrays.update(x=x.astype(np.float32), labels=np.asarray(labels, np.int32), weights=np.array(weights), rates=np.array(rates),
                  momenta=np.array(momenta, np.float64))
    store.add(f"trajectory {name}", arrays, op="trajectory", layers=layers, activation=activation, optimizer=optimizer,
              options={k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}, batches=sizes, loss=loss,
              label_smoothing=label_smoothing, schedule=schedule or {"kind": "constant"}, steps_per_epoch=steps_per_epoch)


def trajectories():
    small, wide, deep, flat = [6, 5, 3], [9, 16, 10], [4, 7, 5, 3], [8, 4]
    t = trajectory
    t("sgd", small, "sigmoid", "sgd", dict(lr=0.5), [4])
    t("sgd tanh, batches vary", wide, "tanh", "sgd", dict(lr=0.1), [16, 16, 3, 1])
    t("sgd weight decay", deep, "relu", "sgd", dict(lr=0.1, weight_decay=0.05), [5])
    t("momentum", small, "relu", "sgd", dict(lr=0.1, momentum=0.9), [8])
    t("momentum and decay", wide, "sigmoid", "sgd", dict(lr=0.2, momentum=0.8, weight_decay=0.01), [7, 2])
    t("nesterov", deep, "tanh", "sgd", dict(lr=0.05, momentum=0.9, nesterov=True), [6])
    t("nesterov and decay, one layer", flat, "sigmoid", "sgd", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02), [3])
    t("adam", small, "tanh", "adam", dict(lr=0.01), [4])
    t("adam with decay", wide, "relu", "adam", dict(lr=0.005, weight_decay=0.1), [16, 5])
    t("adam other betas", deep, "sigmoid", "adam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-6), [5])
    t("adamw", small, "sigmoid", "adamw", dict(lr=0.01, weight_decay=0.01), [4])
    t("adamw strong decay", deep, "relu", "adamw", dict(lr=0.02, weight_decay=0.5), [9, 1])
    t("sgd step schedule", small, "relu", "sgd", dict(lr=0.3), [4], schedule=dict(kind="step", step_size=2, gamma=0.1))
    t("adam step schedule", small, "tanh", "adam", dict(lr=0.02), [4], schedule=dict(kind="step", step_size=1, gamma=0.5))
    t("momentum cosine schedule", deep, "tanh", "sgd", dict(lr=0.2, momentum=0.9), [4],
      schedule=dict(kind="cosine", epochs=5, min_lr=0.01))
    t("sgd one-cycle", small, "sigmoid", "sgd", dict(lr=0.5, momentum=0.9), [4], schedule=dict(kind="one_cycle", epochs=5))
    t("adamw one-cycle", wide, "relu", "adamw", dict(lr=0.02, weight_decay=0.05), [6], schedule=dict(kind="one_cycle", epochs=5))
    t("sgd warm-up", small, "tanh", "sgd", dict(lr=0.4), [4], schedule=dict(kind="warmup", warmup_steps=5))
    t("adam warm-up", deep, "relu", "adam", dict(lr=0.02), [4], schedule=dict(kind="warmup", warmup_steps=4))
    t("sgd label smoothing", wide, "sigmoid", "sgd", dict(lr=0.5), [16, 4], label_smoothing=0.1)
    t("sgd mse", small, "sigmoid", "sgd", dict(lr=1.0), [8], loss="mse")
    t("adam mse", wide, "tanh", "adam", dict(lr=0.01), [8, 3], loss="mse")


for group in (cross_entropies, squared_errors, trajectories):
    group()
store.write()
