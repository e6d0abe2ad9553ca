"""SciPy: signal.convolve2d with the flipped kernel, which is the definition of the correlation."""
from scipy import signal


def correlation(image, kernel):
    return signal.convolve2d(image, kernel[::-1, ::-1], mode="same")
