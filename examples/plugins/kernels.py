"""Three computations in Python with NumPy. Make them faster; Numba works, too.

    tandem study max --with kernels.py
    tandem study xxt --with kernels.py
    tandem study correlation --with kernels.py

The arguments are NumPy arrays in memory that the study shares; inputs cannot be written to. A function fills `out`, or returns
its result, which is then copied. It may take a keyword argument `threads`, and returns NotImplemented for a case it does not
support.
"""
import numpy as np


def max(a, b, out):
    np.maximum(a, b, out=out)


def xxt(x, out):
    np.matmul(x, x.T, out=out)


def correlation(image, kernel, out):
    """The sum of shifted images, one for each weight of the kernel."""
    rows, columns = kernel.shape
    top, left = rows // 2, columns // 2
    padded = np.pad(image, ((top, rows - top), (left, columns - left)))
    out[...] = 0
    for i in range(rows):
        for j in range(columns):
            out += kernel[i, j] * padded[i:i + image.shape[0], j:j + image.shape[1]]
