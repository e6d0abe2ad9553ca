"""Numba on the GPU: textbook kernels, one thread per element."""
from numba import cuda

device = "cuda"
THREADS = (16, 16)


def prepare(array):
    return cuda.as_cuda_array(array)


def launch(kernel, out, *arrays):
    rows, columns = out.shape
    kernel[((columns + 15) // 16, (rows + 15) // 16), THREADS](*arrays, out)


@cuda.jit
def max_kernel(a, b, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = a[y, x] if a[y, x] > b[y, x] else b[y, x]


@cuda.jit
def xxt_kernel(x, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = x[0, 0] - x[0, 0]
        for k in range(x.shape[1]):
            total += x[i, k] * x[j, k]
        out[i, j] = total


@cuda.jit
def correlation_kernel(image, kernel, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = image[0, 0] - image[0, 0]
        top, left = kernel.shape[0] // 2, kernel.shape[1] // 2
        for i in range(kernel.shape[0]):
            for j in range(kernel.shape[1]):
                if 0 <= y + i - top < image.shape[0] and 0 <= x + j - left < image.shape[1]:
                    total += kernel[i, j] * image[y + i - top, x + j - left]
        out[y, x] = total


def tandem_max(a, b, out):
    launch(max_kernel, out, a, b)


def xxt(x, out):
    launch(xxt_kernel, out, x)


def correlation(image, kernel, out):
    launch(correlation_kernel, out, image, kernel)
