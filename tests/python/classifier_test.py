"""tandem.Classifier and tandem.train, with the package of the build: run by ctest."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import tandem

PROGRAM = os.environ["TANDEM_PROGRAM"]


def save(path, pixels):
    """Writes a PPM or PGM file."""
    header = b"P5" if pixels.ndim == 2 else b"P6"
    with open(path, "wb") as file:
        file.write(header + b"\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]) + np.ascontiguousarray(pixels).tobytes())
    return path


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = staticmethod(lambda name: os.path.join(cls.folder.name, name))
        cls.run_ = tandem.train("digits", model="lenet", limit=600, epochs=2, batch_size=32, validation=100, seed=3,
                                out=cls.path("run"), progress=False)
        cls.model = tandem.Classifier(cls.run_.model)
        cls.image = np.random.default_rng(1).integers(0, 256, (37, 52, 3), dtype=np.uint8)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class Training(Case):
    def test_run_has_its_files_and_figures(self):
        self.assertEqual(self.run_.folder, self.path("run"))
        self.assertEqual([epoch["epoch"] for epoch in self.run_.epochs], [1, 2])
        self.assertIn(self.run_.best, self.run_.epochs)
        self.assertTrue(os.path.exists(self.run_.report))

    def test_options_are_those_of_the_program(self):
        seen = []
        run = tandem.train("digits", layers=[784, 8, 10], limit=200, epochs=1, out=self.path("options"), progress=False,
                           on_epoch=seen.append, augment=None, shuffle="none", nesterov=False)
        self.assertEqual(seen, run.epochs)
        with open(os.path.join(run.folder, "config.toml")) as file:
            config = file.read()
        self.assertIn("layers = [784, 8, 10]", config)
        self.assertIn('shuffle = "none"', config)
        self.assertIn("nesterov = false", config)

    def test_folds_are_no_epochs(self):
        seen = []
        run = tandem.train("digits", layers=[784, 8, 10], limit=60, folds=3, epochs=1, out=self.path("folds"), on_epoch=seen.append)
        self.assertEqual([fold["fold"] for fold in run.folds], [1, 2, 3])
        self.assertEqual(sum(fold["images"] for fold in run.folds), 60)
        self.assertEqual(seen, run.epochs)
        self.assertTrue(all("epoch" in epoch for epoch in run.epochs))

    def test_bad_options_raise_the_programs_message(self):
        for options, text in ({"epochs": 0}, "epochs"), ({"colour": 1}, "--colour"), ({"model": "lennet"}, "lenet"):
            with self.assertRaisesRegex(tandem.Error, text):
                tandem.train("digits", limit=100, out=self.path("bad"), progress=False, **options)
        with self.assertRaisesRegex(tandem.Error, "no such"):
            tandem.train(self.path("no such folder"), out=self.path("bad"), progress=False)
        with self.assertRaises(ZeroDivisionError):
            tandem.train("digits", limit=100, epochs=50, out=self.path("callback"), progress=False, on_epoch=lambda _: 1 / 0)

    def test_ctrl_c_saves_and_raises(self):
        code = ("import tandem, sys\n"
                "try: tandem.train('digits', limit=2000, epochs=2000, out=sys.argv[1], on_epoch=lambda e: print(e['epoch'], flush=True))\n"
                "except KeyboardInterrupt as stop: print('stopped:', stop)\n")
        child = subprocess.Popen([sys.executable, "-c", code, self.path("stopped")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True)
        with child:
            self.assertEqual(child.stdout.readline(), "1\n")
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read()
        self.assertEqual(child.returncode, 0)
        self.assertIn("stopped: Stopped and saved", rest)
        with open(self.path("stopped/log.csv")) as file:
            done = len(file.readlines()) - 1
        run = tandem.train(resume=self.path("stopped"), epochs=done + 1, progress=False)
        self.assertEqual(run.epochs[-1]["epoch"], done + 1)

    def test_program_runs_any_command(self):
        self.assertIn("lenet", tandem.program("inspect", self.run_.model))
        with self.assertRaisesRegex(tandem.Error, "no such"):
            tandem.program("inspect", self.path("no such file"))

    def test_other_threads_go_on(self):
        count, done = [0], threading.Event()

        def work():
            while not done.is_set():
                count[0] += 1
                time.sleep(0)
        thread = threading.Thread(target=work)
        thread.start()
        tandem.train("digits", limit=300, epochs=1, out=self.path("threads"), progress=False)
        done.set()
        thread.join()
        self.assertGreater(count[0], 10)


class Classification(Case):
    def predict(self, *files):
        return json.loads(subprocess.run([PROGRAM, "predict", self.run_.model, *files, "--json", "-"], check=True, capture_output=True,
                                         text=True).stdout)

    def test_bits_are_those_of_the_program(self):
        gray = self.image[..., 0].copy()
        files = [save(self.path("a.ppm"), self.image), save(self.path("b.pgm"), gray)]
        rows = self.predict(*files)
        for row, image, file in zip(rows, (self.image, gray), files):
            for given in (image, file):
                answer = self.model(given)
                self.assertEqual(answer.class_name, row["class"])
                self.assertEqual(list(answer.probabilities), [np.float32(p) for p in row["probabilities"].values()])
        self.assertEqual(self.model.classes, list(rows[0]["probabilities"]))

    def test_prediction(self):
        answer = self.model(self.image)
        self.assertEqual(answer.index, int(np.argmax(answer.probabilities)))
        self.assertEqual(answer.probabilities.dtype, np.float32)
        self.assertEqual(answer.probability, answer.probabilities.max())
        self.assertEqual(self.model.classes[answer.index], answer.class_name)
        self.assertRegex(repr(answer), r"^Prediction\('\d', [01]\.\d{4}\)$")
        self.assertEqual(self.model.size, (28, 28))

    def test_layouts(self):
        expected = self.model(self.image).probabilities
        padded = np.zeros((37, 60, 3), np.uint8)
        padded[:, :52] = self.image
        rgba = np.dstack([self.image, np.full((37, 52), 9, np.uint8)])
        read_only = self.image.copy()
        read_only.flags.writeable = False
        for same in (padded[:, :52], rgba, read_only, np.asfortranarray(self.image), self.image[::-1].copy()[::-1], self.image[:, ::-1].copy()[:, ::-1],
                     np.ascontiguousarray(self.image.transpose(2, 0, 1)).transpose(1, 2, 0)):
            np.testing.assert_array_equal(self.model(same).probabilities, expected)

    def test_batches(self):
        images = [self.image, self.image[:20], self.image[..., 1]]
        one_by_one = [self.model(image).probabilities for image in images]
        for answer, expected in zip(self.model(images), one_by_one):
            np.testing.assert_array_equal(answer.probabilities, expected)
        stacked = self.model(np.stack([self.image, self.image[::-1]]))
        np.testing.assert_array_equal(stacked[0].probabilities, one_by_one[0])
        self.assertEqual(self.model([]), [])

    def test_pil_images(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow is not installed")
        expected = self.model(self.image).probabilities
        image = Image.fromarray(self.image)
        np.testing.assert_array_equal(self.model(image).probabilities, expected)
        for mode in ("P", "CMYK", "LA", "1", "I"):
            converted = image.convert(mode)
            np.testing.assert_array_equal(self.model(converted).probabilities, self.model(converted.convert("RGB")).probabilities)
        clear = Image.new("RGBA", (30, 30), (10, 20, 30, 0))
        np.testing.assert_array_equal(self.model(clear).probabilities, self.model(np.full((30, 30, 3), 255, np.uint8)).probabilities)

    def test_bad_input(self):
        for bad in (self.image.astype(np.float32), self.image.astype(">u2"), self.image.astype(np.int8), self.image[0, 0], self.image[..., :2],
                    np.zeros((3, 4, 5, 6, 7), np.uint8), np.array("x"), 7, None, object(), b"bytes"):
            with self.assertRaises(TypeError):
                self.model(bad)
        for bad in (np.zeros((0, 5, 3), np.uint8), np.zeros((5, 0, 3), np.uint8)):
            with self.assertRaises(tandem.Error):
                self.model(bad)
        with self.assertRaisesRegex(tandem.Error, "no such file"):
            self.model(self.path("nothing.png"))
        with self.assertRaisesRegex(tandem.Error, "no such file"):
            tandem.Classifier(self.path("nothing"))
        with self.assertRaises(tandem.Error):
            tandem.Classifier(self.run_.model, device="toaster")
        with self.assertRaises(tandem.Error):
            tandem.Classifier(self.run_.model, precision="tf32")
        with self.assertRaises(TypeError):
            tandem.Classifier()

    def test_threads_share_a_model(self):
        images = [np.roll(self.image, i, 0) for i in range(8)]
        expected = [self.model(image).probabilities for image in images]
        wrong = []

        def work(at):
            for i in range(30):
                j = (at + i) % 8
                if not np.array_equal(self.model(images[j]).probabilities, expected[j]):
                    wrong.append(j)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
