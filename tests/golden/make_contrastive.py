"""Stored cases for contrastive pretraining, from PyTorch in f64. params["op"] names the function.

nt_xent is written with torch.nn.functional alone: normalize, the matrix of similarities without its diagonal, cross_entropy with
the partner's column as the label. `accuracy` is the share of rows whose partner is more similar than every other row. alignment
and uniformity are the functions of Wang and Isola (2020), with their code's norm and torch.pdist. "lars" holds steps of
layer-wise adaptive rate scaling as SimCLR's code has it (classic momentum), by NumPy: parameters "p0", "p1", …, their gradients,
one row per step ("g0", …), the rate of each step ("rates") and the parameters after each step ("w0", …). Every input is exact in f32.

    python3 tests/golden/make_contrastive.py
"""
import numpy as np
import torch
from torch.nn import functional as F

from store import Store

store = Store("contrastive")
rng = np.random.default_rng(47)


def in_f32(value):
    return np.asarray(value, np.float32).astype(np.float64)


def normal(*shape, scale=1.0):
    return in_f32(scale * rng.standard_normal(shape))


def views(pairs, d, noise):
    """Two noisy views of each of `pairs` vectors."""
    base = normal(pairs, d)
    return in_f32(np.concatenate([base + normal(pairs, d, scale=noise), base + normal(pairs, d, scale=noise)]))


def nt_xent(x, temperature):
    n = len(x) // 2
    z = F.normalize(x, dim=1)
    logits = (z @ z.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -torch.inf)
    partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
    to_partner = logits.gather(1, partner[:, None])
    others = logits.scatter(1, partner[:, None], -torch.inf)
    return F.cross_entropy(logits, partner), (to_partner[:, 0] > others.amax(1)).double().mean()


def contrastive_losses():
    for pairs, d, temperature, noise in ((2, 1, 0.5, 0.5), (2, 3, 0.2, 0.5), (3, 5, 0.2, 1), (7, 16, 0.1, 0.7), (16, 33, 0.5, 1), (17, 8, 0.05, 0.3),
                                         (64, 32, 0.2, 1), (129, 16, 0.07, 0.5), (20, 12, 1.0, 0.01), (5, 4, 0.001, 1)):
        x = torch.tensor(views(pairs, d, noise), requires_grad=True)
        loss, accuracy = nt_xent(x, temperature)
        grad_out = torch.tensor(normal())
        loss.backward(grad_out)
        store.add(f"nt_xent {2 * pairs}x{d} temperature={temperature} noise={noise}",
                  {"x": x.detach().numpy(), "expected": loss.detach().numpy(), "accuracy": accuracy.numpy(), "grad_out": grad_out.numpy(),
                   "grad_x": x.grad.numpy()}, op="nt_xent", temperature=temperature)


def embedding_metrics():
    for pairs, d, noise, power, scale in ((1, 2, 1, 2, 2), (3, 5, 0.5, 2, 2), (8, 16, 0.1, 1, 3), (40, 32, 1, 2, 2), (130, 8, 0.3, 1.5, 0.5)):
        x = torch.tensor(views(pairs, d, noise))
        z = F.normalize(x, dim=1)
        alignment = (z[:pairs] - z[pairs:]).norm(p=2, dim=1).pow(power).mean()
        store.add(f"alignment {2 * pairs}x{d} power={power}", {"x": x.numpy(), "expected": alignment.numpy()}, op="alignment", power=power)
        rows = z if pairs % 2 == 0 else z[:-1] if pairs > 1 else z
        uniformity = torch.pdist(rows, p=2).pow(2).mul(-scale).exp().mean().log()
        store.add(f"uniformity {len(rows)}x{d} scale={scale}", {"x": x[:len(rows)].numpy(), "expected": uniformity.numpy()}, op="uniformity",
                  scale=scale)


def lars(shapes, momentum, weight_decay, trust, rates):
    """google-research/simclr, lars_optimizer.py with the trust ratio of You et al.; only matrices are decayed and adapted."""
    w = [normal(*shape) for shape in shapes]
    velocity = [np.zeros(shape) for shape in shapes]
    arrays = {f"p{i}": value.copy() for i, value in enumerate(w)}
    gradients, after = [[] for _ in shapes], [[] for _ in shapes]
    for rate in rates:
        for i, shape in enumerate(shapes):
            g = normal(*shape, scale=0.3)
            gradients[i].append(g)
            ratio = 1.0
            if len(shape) > 1:
                w_norm, g_norm = np.linalg.norm(w[i]), np.linalg.norm(g)
                if w_norm > 0 and g_norm + weight_decay * w_norm > 0:
                    ratio = trust * w_norm / (g_norm + weight_decay * w_norm)
                g = g + weight_decay * w[i]
            velocity[i] = momentum * velocity[i] + rate * ratio * g
            w[i] = w[i] - velocity[i]
            after[i].append(w[i].copy())
    for i in range(len(shapes)):
        arrays[f"g{i}"], arrays[f"w{i}"] = np.array(gradients[i]), np.array(after[i])
    store.add(f"lars momentum={momentum} weight_decay={weight_decay} trust={trust}", {**arrays, "rates": np.array(rates)}, op="lars",
              parameters=len(shapes), momentum=momentum, weight_decay=weight_decay, trust_coefficient=trust)


def lars_steps():
    shapes = [(5, 3), (5,), (4, 3, 3, 2), (1,), (50, 21)]
    rates = [0.5, 0.8, 0.3]
    for momentum, weight_decay, trust in ((0.9, 1e-2, 0.001), (0.9, 0.0, 0.02), (0.0, 0.1, 0.5)):
        lars(shapes, momentum, weight_decay, trust, rates)


for group in (contrastive_losses, embedding_metrics, lars_steps):
    group()
store.write()
