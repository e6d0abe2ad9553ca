"""train(): runs the program `tandem train`, which does all of the work, and shows how it gets on."""
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

from ._tandem import Error

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished training run."""
    folder: str
    epochs: list  # one dict per epoch: train_loss, train_accuracy, val_loss, val_accuracy, learning_rate, seconds, …
    folds: list = dataclasses.field(default_factory=list)  # of a cross-validation, one dict per fold: images, correct, accuracy, loss, …

    @property
    def model(self):
        """The path of the model file, for Classifier."""
        return os.path.join(self.folder, "best.safetensors")

    @property
    def report(self):
        """The path of the report, a page of HTML."""
        return os.path.join(self.folder, "report.html")

    @property
    def best(self):
        """The epoch whose weights are in the model file: the first with the best validation accuracy."""
        return max(self.epochs, key=lambda epoch: epoch["val_accuracy"]) if self.epochs else None


def _program():
    """The path of the program: TANDEM_PROGRAM, the one in this package, or `tandem` in PATH."""
    own = os.path.join(_PACKAGE, "bin", "tandem")
    found = os.environ.get("TANDEM_PROGRAM") or (own if os.path.exists(own) else shutil.which("tandem"))
    if not found:
        raise Error("the program `tandem` is not in PATH: install Tandem, or set TANDEM_PROGRAM")
    return found


def _environment():
    """For the program: where the libraries and weights of a wheel are."""
    result = dict(os.environ)
    library, weights = os.path.join(_PACKAGE, "lib"), os.path.join(_PACKAGE, "weights")
    if os.path.isdir(library):
        result["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [library, os.environ.get("LD_LIBRARY_PATH")]))
    if os.path.isdir(weights):
        result.setdefault("TANDEM_WEIGHTS", weights)
    return result


def main():
    """The command `tandem` of a wheel."""
    os.execve(_program(), ["tandem", *sys.argv[1:]], _environment())


def program(*arguments):
    """Runs `tandem ARGUMENTS…` and returns what it prints: program("eval", run.model, "photos"). Raises Error with its message if it fails."""
    done = subprocess.run([_program(), *map(os.fspath, arguments)], env=_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace")
    if done.returncode:
        raise Error(_message(done.stderr.splitlines(), done.returncode))
    return done.stdout


def _message(lines, status):
    """The error in the lines of a program that failed."""
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return errors[-1] if errors else f"the program ended with status {status}: {' '.join(lines[-1:])}"


def train(data="digits", *, out=None, progress=None, on_epoch=None, **options):
    """Trains a classifier and returns its Run.

    data: a folder of photographs, one folder per class, or the name of a data set. options: those of `tandem train`, with _ for -:
    train("photos", model="resnet18", epochs=20, batch_size=16, freeze=True, layers=[784, 100, 10]); None leaves one out, False is
    --no-…  where the flag is on by default. out: the run folder. progress: False hides it. on_epoch: called with the dict of every epoch.

    Other Python threads go on meanwhile. Ctrl-C (or Interrupt in a notebook) saves, then raises KeyboardInterrupt: train(resume=FOLDER)
    continues. Raises Error with the program's message if it fails.
    """
    command = [_program(), "train", os.fspath(data), "--json", "-"]
    if out is not None:
        command += ["--out", os.fspath(out)]
    for name, value in options.items():
        command += _flag(name, value)
    if options.get("resume") not in (None, False):
        command.remove(os.fspath(data))  # the run knows its data
    display, messages, epochs, folds, interrupted = _Display(progress is not False), [], [], [], False
    process = subprocess.Popen(command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True)  # so that Ctrl-C reaches this process alone
    with process:
        reader = threading.Thread(target=_read_messages, args=(process.stderr, messages, display), daemon=True)
        reader.start()
        while reader.is_alive():
            try:
                for line in process.stdout:
                    row = json.loads(line)
                    if "fold" in row:
                        folds.append(row)
                        display.figures(f"Fold {row['fold']}", row, ("accuracy",))
                        continue
                    epochs.append(row)
                    display.figures(f"Epoch {row['epoch']}", row, ("train_loss", "val_loss", "val_accuracy"))
                    if on_epoch:
                        on_epoch(epochs[-1])
                reader.join()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGKILL if interrupted else signal.SIGINT)  # the first one saves and stops
                interrupted = True
            except BaseException:  # of on_epoch
                process.send_signal(signal.SIGTERM)
                raise
    display.close()
    if interrupted:
        raise KeyboardInterrupt(next((line for line in messages if "saved" in line), "stopped"))
    if process.returncode:
        raise Error(_message(messages, process.returncode))
    folder = next(line.split(": ", 1)[1] for line in reversed(messages) if line.startswith("Report: "))
    return Run(os.path.dirname(folder), epochs, folds)


def _flag(name, value):
    flag = "--" + name.replace("_", "-")
    if value is None:
        return []
    if value is True:
        return [flag]
    if value is False:
        return [f"{flag}=false"]
    if isinstance(value, (list, tuple)):
        value = ",".join(str(each) for each in value)
    return [f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def _read_messages(stream, messages, display):
    for line in stream:
        line = line.rstrip("\n")
        messages.append(line)
        del messages[:-200]
        display.message(line)


class _Display:
    """The program's messages: in a terminal and in a log as they come; in a notebook the last one is replaced by the next."""

    def __init__(self, enabled):
        self.enabled, self.handle, self.lock = enabled, None, threading.Lock()
        if enabled and "ipykernel" in sys.modules:
            try:
                from IPython.display import display
                self.handle = display({"text/plain": "Training"}, raw=True, display_id=True)
            except ImportError:
                pass

    def message(self, line):
        if not self.enabled:
            return
        with self.lock:
            if self.handle:
                self.handle.update({"text/plain": line}, raw=True)
            else:
                print(line, file=sys.stderr, flush=True)

    def figures(self, title, row, names):
        if not self.enabled:
            return
        texts = [f"{name.replace('_', ' ')} " + (f"{100 * row[name]:.2f} %" if name.endswith("accuracy") else f"{row[name]:.4f}")
                 for name in names if row.get(name) is not None]
        with self.lock:
            print(f"{title}: {', '.join(texts)}", file=sys.stderr, flush=True)

    def close(self):
        if self.handle:
            self.handle.update({"text/plain": ""}, raw=True)
