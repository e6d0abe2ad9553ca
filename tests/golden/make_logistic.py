"""Stored cases for multinomial logistic regression with an L2 penalty: the minimum of mean cross-entropy + penalty / 2 * sum of squared weights
(biases are not penalized), found by scipy.optimize.minimize (L-BFGS-B) and polished by Newton steps with the exact Hessian, in f64.

    python3 tests/golden/make_logistic.py
"""
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from store import Store

# rows, features, classes, penalty
SHAPES = [(4, 1, 2, 1e-1), (30, 5, 3, 1e-2), (20, 40, 2, 1e-3), (100, 24, 10, 3e-5), (33, 7, 4, 1e-1), (15, 16, 5, 1e-4), (64, 3, 3, 1e-6)]


def loss(flat, x, labels, classes, penalty):
    w = flat.reshape(classes, -1)
    logits = x @ w.T
    rows = np.arange(len(x))
    value = np.mean(logsumexp(logits, axis=1) - logits[rows, labels]) + penalty / 2 * np.sum(w[:, :-1] ** 2)
    p = softmax(logits, axis=1)
    p[rows, labels] -= 1
    gradient = p.T @ x / len(x)
    gradient[:, :-1] += penalty * w[:, :-1]
    return value, gradient.ravel()


def hessian(flat, x, classes, penalty):
    w = flat.reshape(classes, -1)
    p = softmax(x @ w.T, axis=1)
    inner = np.einsum("ni,ij->nij", p, np.eye(classes)) - np.einsum("ni,nj->nij", p, p)
    h = np.einsum("nij,na,nb->iajb", inner, x, x).reshape(len(flat), len(flat)) / len(x)
    penalized = np.ones_like(w)
    penalized[:, -1] = 0
    return h + np.diag(penalty * penalized.ravel())


store = Store("logistic")
rng = np.random.default_rng(17)
for rows, features, classes, penalty in SHAPES:
    labels = rng.integers(0, classes, rows, dtype=np.int32)
    labels[:classes] = np.arange(classes)
    x = rng.standard_normal((rows, features)) + 0.5 * rng.standard_normal((classes, features))[labels]
    ones = np.hstack([x, np.ones((rows, 1))])
    flat = minimize(loss, np.zeros(classes * (features + 1)), (ones, labels, classes, penalty), "L-BFGS-B", True,
                    options={"maxiter": 100000, "maxfun": 1000000, "ftol": 0, "gtol": 1e-10}).x
    for _ in range(5):  # of all minima, the biases' sum may be anything: lstsq does not change it
        flat = flat - np.linalg.lstsq(hessian(flat, ones, classes, penalty), loss(flat, ones, labels, classes, penalty)[1], rcond=1e-13)[0]
    value, gradient = loss(flat, ones, labels, classes, penalty)
    assert np.abs(gradient).max() < 1e-13, np.abs(gradient).max()
    weights = flat.reshape(classes, -1)
    weights[:, -1] -= weights[:, -1].mean()
    store.add(f"{rows}x{features} {classes} classes", {"x": x, "labels": labels, "weights": weights, "loss": np.array(value)}, penalty=penalty)
store.write()
