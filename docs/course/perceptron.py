#!/usr/bin/env python3
"""perceptron.py: forward and backward pass of a small perceptron in plain Python, in both index conventions.

Prints the matrices of one sample, then compares every gradient with a central difference. Exit status 1 if one is wrong."""
import math
import sys


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def derivative(a):
    """of the activation, from its output a"""
    return a * (1 - a)


# Convention A: W[in][out], a sample is a row, z = x·W + b.
def forward_a(x, W, b):
    return [sum(x[i] * W[i][j] for i in range(len(x))) + b[j] for j in range(len(b))]


def backward_a(x, W, dz):
    dW = [[x[i] * dz[j] for j in range(len(dz))] for i in range(len(x))]          # xᵀ·dz
    dx = [sum(W[i][j] * dz[j] for j in range(len(dz))) for i in range(len(x))]    # dz·Wᵀ
    return dx, dW


# Convention B: W[out][in], a sample is a column, z = W·x + b. PyTorch and Tandem store weights in this order.
def forward_b(x, W, b):
    return [sum(W[j][i] * x[i] for i in range(len(x))) + b[j] for j in range(len(b))]


def backward_b(x, W, dz):
    dW = [[dz[j] * x[i] for i in range(len(x))] for j in range(len(dz))]          # dz·xᵀ
    dx = [sum(W[j][i] * dz[j] for j in range(len(dz))) for i in range(len(x))]    # Wᵀ·dz
    return dx, dW


def loss_and_gradients(x, target, layers, forward, backward):
    """layers: [(W, b), …]. Loss: half the sum of squared errors. -> loss, [(dW, db), …]"""
    outputs = [x]
    for W, b in layers:
        outputs.append([sigmoid(z) for z in forward(outputs[-1], W, b)])
    da = [a - t for a, t in zip(outputs[-1], target)]
    gradients = []
    for (W, b), before, after in reversed(list(zip(layers, outputs, outputs[1:]))):
        dz = [d * derivative(a) for d, a in zip(da, after)]
        da, dW = backward(before, W, dz)
        gradients.insert(0, (dW, dz))
    return sum((a - t) ** 2 for a, t in zip(outputs[-1], target)) / 2, gradients


def transposed(W):
    return [list(column) for column in zip(*W)]


def show(name, W):
    rows = W if isinstance(W[0], list) else [W]
    for k, row in enumerate(rows):
        print(f"{name if k == 0 else '':<10}" + "  ".join(f"{value:8.4f}" for value in row))


def main():
    x, target = [1.0, 2.0], [1.0, 0.0]
    layers = [([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], [0.1, 0.0, -0.1]),       # 2 inputs, 3 hidden
              ([[0.5, -0.5], [0.25, 0.75], [-1.0, 1.0]], [0.0, 0.2])]        # 3 hidden, 2 outputs
    layers_b = [(transposed(W), b) for W, b in layers]
    loss, gradients = loss_and_gradients(x, target, layers, forward_a, backward_a)
    loss_b, gradients_b = loss_and_gradients(x, target, layers_b, forward_b, backward_b)
    show("W1[in]", layers[0][0])
    show("dW1[in]", gradients[0][0])
    show("db1", gradients[0][1])
    show("dW1[out]", gradients_b[0][0])
    same = loss == loss_b and all(dW == transposed(dW_b) and db == db_b for (dW, db), (dW_b, db_b) in zip(gradients, gradients_b))
    print(f"loss {loss:.6f}; both conventions agree: {'yes' if same else 'NO'}")

    worst, count, step = 0.0, 0, 1e-5
    for (W, b), (dW, db) in zip(layers, gradients):
        for values, expected in [*zip(W, dW), (b, db)]:
            for k in range(len(values)):
                kept = values[k]
                values[k] = kept + step
                above = loss_and_gradients(x, target, layers, forward_a, backward_a)[0]
                values[k] = kept - step
                below = loss_and_gradients(x, target, layers, forward_a, backward_a)[0]
                values[k] = kept
                worst, count = max(worst, abs((above - below) / (2 * step) - expected[k])), count + 1
    right = worst < 1e-8
    print(f"{count} gradients, {'all right' if right else 'SOME ARE WRONG'}")
    sys.exit(0 if same and right else 1)


main()
