"""The commands that check-faults disturbs: how each is prepared, and what it may leave behind."""
import functools
import http.server
import os
import shutil
import threading

import faults

MLP = ["--layers", "784,8,10", "--epochs", "2", "--device", "cpu"]
TRAININGS = {
    "perceptron": [*MLP, "--augment", "none"],
    "CNN": ["--model", "lenet", "--batch-size", "20", "--epochs", "2", "--device", "cpu", "--augment", "none"],
    "threads": [*MLP, "--augment", "digits", "--workers", "2", "--worker-kind", "thread"],
    "processes": [*MLP, "--augment", "digits", "--workers", "2", "--worker-kind", "process"],
    "ranks": [*MLP, "--augment", "none", "--ranks", "2"],
}


def train_words(name, run="run"):
    """Resumes the run in the folder, if there is one, else starts it."""
    return ["train", "data", *TRAININGS[name], "--out", run, "--resume", "auto"]


def different_files(folder, expected):
    """The names of the files that are there and have other bytes."""
    found = []
    for name, data in expected.items():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                found += [name] if file.read() != data else []
    return found


# The ways to train beside the plain one, which make the same calls and some more.
VARIANTS = {"train CNN": "CNN", "train, thread workers": "threads", "train, process workers": "processes", "train, 2 ranks": "ranks"}


class Command:
    """Words that are run in a copy of the folder `prepared`; afterwards `check` gives what is wrong."""

    def __init__(self, runner, scratch, name):
        self.runner, self.name = runner, name
        self.prepared, self.folder = os.path.join(scratch, name + ".prepared"), os.path.join(scratch, name)
        self.program = None
        os.makedirs(self.prepared)
        self.prepare()
        self.count("open", 0)
        self.remember()

    def run(self, **fault):
        faults.fresh_copy(self.prepared, self.folder)
        return self.runner.run(self.words, self.folder, program=self.program, **fault)

    def count(self, kind, min_bytes):
        """The calls of an undisturbed run."""
        outcome = self.run(min_bytes=min_bytes)
        if outcome.status != 0:
            raise SystemExit(f"check-faults: error: {self.name} fails undisturbed: {outcome.err}")
        return outcome.counts[kind]

    def problems(self, outcome, may_leave=False):
        found = [outcome.problem()] + [f"leaves {path}" for path in self.runner.leftovers(self.folder) if not may_leave]
        return [each for each in found if each] + self.check(outcome)


class Train(Command):
    def __init__(self, runner, scratch, name, training):
        self.training, self.words = training, train_words(training)
        super().__init__(runner, scratch, name)

    def prepare(self):
        faults.write_digits(os.path.join(self.prepared, "data"))

    @property
    def run_folder(self):
        return os.path.join(self.folder, "run")

    def remember(self):
        self.expected = faults.weights(self.run_folder)

    def check(self, outcome):
        damaged = faults.damaged_files(self.run_folder)
        if damaged:
            return damaged
        if outcome.status == 0:
            return self.check_bits("the run")
        return self.check_resume()

    def check_resume(self):
        resumed = self.runner.run(self.words, self.folder)
        if resumed.status != 0:
            return [f"the resume fails: {resumed.err[-300:]}"]
        return self.check_bits("the resumed run") + [f"the resume leaves {path}" for path in self.runner.leftovers(self.folder)]

    def check_bits(self, what):
        return [] if faults.weights(self.run_folder) == self.expected else [f"{what} has other weights"]


class Resume(Train):
    """Of a run that was ended in its second epoch."""

    def prepare(self):
        super().prepare()
        whole = self.runner.run(self.words, self.prepared)
        shutil.rmtree(os.path.join(self.prepared, "run"))
        self.runner.run(self.words, self.prepared, kind="fsync", at=whole.counts["fsync"] * 2 // 3, action=faults.KILL)
        for path in self.runner.leftovers(self.prepared):
            os.remove(path)
        if faults.damaged_files(os.path.join(self.prepared, "run")):
            raise SystemExit("check-faults: error: the run to resume is damaged")

    def remember(self):
        shutil.rmtree(self.run_folder)
        self.runner.run(self.words, self.folder)
        super().remember()


class WithModel(Command):
    def prepare(self):
        faults.write_digits(os.path.join(self.prepared, "data"))
        faults.write_photos(os.path.join(self.prepared, "photos"), per_class=3)
        self.runner.run(train_words("perceptron"), self.prepared)

    def remember(self):
        self.expected = {}
        for name in self.outputs:
            with open(os.path.join(self.folder, name), "rb") as file:
                self.expected[name] = file.read()

    def check(self, outcome):
        wrong = different_files(self.folder, self.expected)
        missing = [name for name in self.expected if outcome.status == 0 and not os.path.exists(os.path.join(self.folder, name))]
        return [f"{name} is not what it should be" for name in wrong] + [f"{name} is missing" for name in missing]


class Predict(WithModel):
    """An image that cannot be read costs its row, which says why, and not the others."""
    words = ["predict", "run", "photos", "--csv", "rows.csv", "--labels", "labels.csv", "--sheet", "sheet.png"]
    outputs = ["rows.csv", "labels.csv", "sheet.png"]

    def check(self, outcome):
        found = []
        for name in self.outputs:
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    found += [] if self.is_whole(name, file.read()) else [f"{name} is cut off"]
            elif outcome.status == 0:
                found.append(f"{name} is missing")
        return found

    def is_whole(self, name, data):
        if name == "sheet.png":
            return data.endswith(b"IEND\xaeB`\x82")
        return data.endswith(b"\n") and (name == "labels.csv" or data.count(b"\n") == self.expected[name].count(b"\n"))


class Export(WithModel):
    words = ["export", "run", "-o", "model.onnx", "--images", "photos", "--count", "1", "--json", "export.json"]
    outputs = ["model.onnx"]


class Split(Command):
    words = ["split", "photos", "parts"]

    def prepare(self):
        faults.write_photos(os.path.join(self.prepared, "photos"))

    def files(self):
        found = {}
        for where, folders, names in os.walk(os.path.join(self.folder, "parts")):
            folders[:] = [name for name in folders if name != ".tandem-split.tmp"]
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    found[os.path.relpath(os.path.join(where, name), self.folder)] = file.read()
        return found

    def remember(self):
        self.expected = self.files()

    def check(self, outcome):
        files = self.files()
        if files == self.expected:
            return []
        if outcome.status == 0 or files:
            return [f"parts has {len(files)} of {len(self.expected)} files"]
        again = self.runner.run(self.words, self.folder)
        return [] if again.status == 0 and self.files() == self.expected else [f"the next split fails: {again.err}"]


class Fetch(Command):
    """Of two small files, from a folder or from a server on this machine."""

    def __init__(self, runner, scratch, name, program, from_server):
        self.from_server, self.helper = from_server, program
        super().__init__(runner, scratch, name)

    def prepare(self):
        self.program = self.helper
        given = os.path.join(self.prepared, "given")
        os.makedirs(given)
        for name, data in (("a-images-idx3-ubyte", b"i" * 10000), ("b-labels-idx1-ubyte", b"l" * 100)):
            with open(os.path.join(given, name), "wb") as file:
                file.write(data)
        origin = "given"
        if self.from_server:
            handler = functools.partial(QuietHandler, directory=given)
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            origin = f"http://127.0.0.1:{server.server_address[1]}/"
        self.words = ["cache", origin]

    def remember(self):
        self.expected = {"cache/small/a-images-idx3-ubyte": b"i" * 10000, "cache/small/b-labels-idx1-ubyte": b"l" * 100}

    def check(self, outcome):
        wrong = [f"{name} is damaged" for name in different_files(self.folder, self.expected)]
        if wrong or outcome.status == 0:
            return wrong
        again = self.runner.run(self.words, self.folder, program=self.program)
        return [] if again.status == 0 else [f"the next fetch fails: {again.err}"]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def all_commands(runner, scratch, fetch_program, names=None):
    makers = {
        "train": lambda name: Train(runner, scratch, name, "perceptron"),
        **{name: lambda name: Train(runner, scratch, name, VARIANTS[name]) for name in VARIANTS},
        "resume": lambda name: Resume(runner, scratch, name, "perceptron"),
        "fetch": lambda name: Fetch(runner, scratch, name, fetch_program, False),
        "fetch, server": lambda name: Fetch(runner, scratch, name, fetch_program, True),
        "predict": lambda name: Predict(runner, scratch, name),
        "split": lambda name: Split(runner, scratch, name),
        "export": lambda name: Export(runner, scratch, name),
    }
    return {name: make(name) for name, make in makers.items() if not names or name in names}
