"""Stored cases for tensor operations and their gradients, from PyTorch in f64. params["op"] names the operation.

A case holds the inputs, `expected`, `grad_out` (the gradient that arrives at the result) and for every differentiable input
`x` its `grad_x`. Rules worth knowing: the gradient of relu at 0 is 0; argmax of equal values is the first index;
matmul's `transpose_a` / `transpose_b` swap the last two axes of the stored operand before the product. Every input is exact in
f32, so that a test in f32 starts from the same numbers and sees only its own rounding.

    python3 tests/golden/make_ops.py
"""
import numpy as np
import torch

from store import Store

store = Store("ops")
rng = np.random.default_rng(23)


def in_f32(value):
    return np.asarray(value, np.float32).astype(np.float64)


def normal(*shape, scale=1.0):
    return in_f32(scale * rng.standard_normal(shape))


def add(op, call, inputs, detail="", constants=None, **params):
    """call(*tensors of inputs) -> result; `constants` are stored but get no gradient."""
    tensors = {name: torch.tensor(in_f32(value), requires_grad=True) for name, value in inputs.items()}
    result = call(*tensors.values())
    grad_out = torch.tensor(normal(*result.shape))
    result.backward(grad_out)
    arrays = {name: t.detach().numpy() for name, t in tensors.items()}
    arrays.update(constants or {})
    arrays.update(expected=result.detach().numpy(), grad_out=grad_out.numpy())
    arrays.update({"grad_" + name: t.grad.numpy() for name, t in tensors.items()})
    shapes = " ".join("x".join(map(str, np.shape(v))) or "scalar" for v in inputs.values())
    settings = "".join(f" {key}={value}" for key, value in params.items())
    store.add(f"{op} {shapes}{settings}{detail and ' ' + detail}", arrays, op=op, **params)


def softmaxes():
    for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for shape, axis in (((1,), 0), ((7,), 0), ((3, 5), 0), ((3, 5), 1), ((3, 5), -1), ((2, 3, 4), 1), ((5, 1), 1), ((17, 33), 1)):
            add(op, lambda x: function(x, axis), {"x": normal(*shape)}, axis=axis)
        add(op, lambda x: function(x, 1), {"x": normal(4, 10, scale=1000)}, "large", axis=1)
        add(op, lambda x: function(x, 1), {"x": 5000 + normal(4, 10)}, "far from zero", axis=1)
        add(op, lambda x: function(x, 0), {"x": np.zeros((6, 2))}, "all equal", axis=0)


def activations():
    for op, function in (("sigmoid", torch.sigmoid), ("tanh", torch.tanh), ("relu", torch.relu)):
        for shape in ((), (1,), (7,), (3, 5), (2, 3, 4), (17, 33)):
            add(op, function, {"x": normal(*shape, scale=2)})
        add(op, function, {"x": np.array([-800.0, -40, -20, 20, 40, 800])}, "large")
        add(op, function, {"x": np.array([0.0, 1e-30, -1e-30, 1e-9, -1e-9])}, "around zero")


def matmuls():
    def swap(t, yes):
        return t.transpose(-1, -2) if yes else t

    shapes = [((1, 1), (1, 1)), ((3, 4), (4, 5)), ((1, 7), (7, 1)), ((7, 1), (1, 7)), ((17, 33), (33, 9)), ((2, 3, 4), (2, 4, 5)),
              ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((1, 2, 3), (4, 3, 2))]
    for a, b in shapes:
        add("matmul", torch.matmul, {"a": normal(*a), "b": normal(*b)}, transpose_a=False, transpose_b=False)
    for ta, tb in ((True, False), (False, True), (True, True)):
        for batch_a, batch_b in (((), ()), ((3,), (3,)), ((2, 1), (3,))):
            a, b = batch_a + ((6, 5) if ta else (5, 6)), batch_b + ((4, 6) if tb else (6, 4))
            add("matmul", lambda x, y: torch.matmul(swap(x, ta), swap(y, tb)), {"a": normal(*a), "b": normal(*b)},
                transpose_a=ta, transpose_b=tb)


def reductions():
    choices = [((7,), [0]), ((3, 5), [0]), ((3, 5), [1]), ((3, 5), [0, 1]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [-1]),
               ((1, 1), [0]), ((33, 65), [1]), ((65, 33), [0])]
    for op, function in (("sum", torch.sum), ("mean", torch.mean)):
        for number, (shape, axes) in enumerate(choices):
            keep = number % 2 == 1
            add(op, lambda x: function(x, dim=axes, keepdim=keep), {"x": normal(*shape)}, axes=axes, keep_dims=keep)
    for shape, axis in (((1,), 0), ((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((17, 65), 1), ((65, 17), 0)):
        for detail, x in (("", normal(*shape)), ("ties", np.asarray(rng.integers(0, 3, shape), np.float64))):
            name = f"argmax {'x'.join(map(str, shape))} axis={axis}{detail and ' ' + detail}"
            store.add(name, {"x": x, "expected": np.asarray(np.argmax(x, axis), np.int64)}, op="argmax", axis=axis)


def arithmetic():
    shapes = [((), ()), ((7,), (7,)), ((3, 5), (3, 5)), ((3, 1), (1, 4)), ((5,), (3, 5)), ((4, 3), ()), ((2, 1, 4), (3, 1)),
              ((2, 3, 4), (2, 3, 1)), ((1, 1), (17, 33))]
    for op, function in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div)):
        for a, b in shapes:
            right = rng.uniform(0.5, 2, b) * rng.choice([-1.0, 1.0], b)  # away from 0, so that a quotient stays tame
            add(op, function, {"a": normal(*a), "b": right})
    for shape in ((1, 1), (1, 5), (5, 1), (4, 10), (17, 33), (2, 3, 4), (2, 3, 2, 5), (65, 3)):
        add("bias_add", torch.add, {"x": normal(*shape), "bias": normal(shape[-1])})


def moves():
    rows = [((1, 1), [0]), ((5, 3), [0, 1, 2, 3, 4]), ((5, 3), [4, 0]), ((5, 3), [2, 2, 2]), ((4, 7), [3, 0, 3, 1, 0, 3]), ((6, 1), [5, 5, 0]),
            ((10, 4), rng.integers(0, 10, 40).tolist()), ((3, 2, 4), [1, 1, 2]), ((33, 17), rng.integers(0, 33, 20).tolist())]
    for number, (shape, indices) in enumerate(rows):
        indices = np.array(indices, np.int64)
        add("gather_rows", lambda t: t[torch.tensor(indices)], {"table": normal(*shape)}, f"{indices.size} rows, set {number}",
            {"indices": indices})
    parts = [(0, [(3,), (4,)]), (0, [(2, 3), (1, 3)]), (1, [(2, 3), (2, 5)]), (-1, [(2, 3), (2, 1), (2, 4)]), (1, [(2, 1, 3), (2, 4, 3)]),
             (2, [(2, 3, 1), (2, 3, 2)]), (0, [(1, 1), (1, 1), (1, 1)]), (1, [(17, 33), (17, 2)]), (0, [(5, 2)])]
    for axis, shapes in parts:
        add("concat", lambda *xs: torch.cat(xs, axis), {f"x{i}": normal(*s) for i, s in enumerate(shapes)}, axis=axis)
    for shape, axes in (((5,), [0]), ((3, 5), [1, 0]), ((3, 5), [0, 1]), ((1, 7), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 3, 4), [1, 0, 2]),
                        ((2, 3, 4), [0, 2, 1]), ((2, 3, 4, 5), [0, 2, 3, 1]), ((2, 3, 4, 5), [3, 1, 0, 2]), ((33, 65), [1, 0])):
        add("permute", lambda x: x.permute(axes), {"x": normal(*shape)}, axes=axes)


for group in (softmaxes, activations, matmuls, reductions, arithmetic, moves):
    group()
store.write()
