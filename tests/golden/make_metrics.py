"""Stored cases for figures of classifiers, by their formulas: the area under the ROC curve as the Mann-Whitney statistic with ties counted half,
average precision as the sum over thresholds of the gain in recall times the precision (scikit-learn's definition), the expected calibration error
of 15 bins, and the temperature with the smallest negative log-likelihood, found by scipy.optimize.minimize_scalar.

    python3 tests/golden/make_metrics.py
"""
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata

from store import Store


def area(scores, positive):
    count = positive.sum()
    ranks = rankdata(scores)[positive].sum()  # ties get their mean rank
    return (ranks - count * (count + 1) / 2) / (count * (~positive).sum())


def average_precision(scores, positive):
    thresholds = np.unique(scores)[::-1]
    found = np.array([(positive & (scores >= t)).sum() for t in thresholds])
    taken = np.array([(scores >= t).sum() for t in thresholds])
    recall = found / positive.sum()
    return np.sum(np.diff(recall, prepend=0) * found / taken)


def calibration_error(p, labels, bins=15):
    confidence, right = p.max(axis=1), p.argmax(axis=1) == labels
    error = 0
    for low in range(bins):
        inside = (confidence > low / bins) & (confidence <= (low + 1) / bins)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return error


def nll(logits, labels, temperature):
    return -np.mean(log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels])


store = Store("metrics")
rng = np.random.default_rng(29)
for name, count, share, digits in (("distinct", 50, 0.5, 9), ("ties", 200, 0.3, 1), ("few", 3, 0.5, 3), ("rare", 1000, 0.01, 2)):
    positive = rng.random(count) < share
    positive[:2] = True, False
    scores = np.round(1 / (1 + np.exp(-(rng.standard_normal(count) + positive))), digits)
    store.add(name, {"scores": scores, "positive": positive.astype(np.uint8), "auc": np.array(area(scores, positive)),
                     "average_precision": np.array(average_precision(scores, positive))}, kind="binary")
for name, count, classes, scale in (("overconfident", 300, 4, 4.0), ("underconfident", 300, 3, 0.2), ("two classes", 60, 2, 2.0)):
    labels = rng.integers(0, classes, count, dtype=np.int32)
    logits = (scale * (rng.standard_normal((count, classes)) + 1.2 * np.eye(classes)[labels])).astype(np.float32)
    wide = logits.astype(np.float64)
    best = minimize_scalar(lambda t: nll(wide, labels, np.exp(t)), bounds=(-3, 3), method="bounded", options={"xatol": 1e-12})
    p = softmax(wide, axis=1)
    store.add(name, {"logits": logits, "labels": labels, "temperature": np.array(np.exp(best.x)), "nll": np.array(nll(wide, labels, 1)),
                     "calibrated_nll": np.array(best.fun), "ece": np.array(calibration_error(p, labels))}, kind="calibration")
store.write()
