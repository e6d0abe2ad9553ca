"""SciPy: signal.convolve2d with the kernel flipped, which is the definition of Tandem's correlation."""
import measure


def run(work, device, budget_s):
    from scipy import signal
    given = measure.inputs(work)
    call = lambda: signal.convolve2d(given[0], given[1][::-1, ::-1], mode="same")
    measure.check_corner(work, given, call())
    yield "SciPy", measure.time_cpu(call, budget_s)


measure.run("SciPy", run)
