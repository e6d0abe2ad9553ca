"""scripts/make-notebooks: every command of a page is in a cell, in order, and what it needs is beside the notebook."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "make-notebooks")


class Notebooks(unittest.TestCase):
    def test_pages_of_the_course(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([sys.executable, SCRIPT, "-o", out], check=True, capture_output=True)
            names = [name for name in os.listdir(out) if name.endswith(".ipynb")]
            self.assertGreaterEqual(len(names), 8)
            for name in names:
                with open(os.path.join(ROOT, "docs", "course", name[:-6] + ".md"), encoding="utf-8") as file:
                    blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.S | re.M)
                with open(os.path.join(out, name), encoding="utf-8") as file:
                    made = json.load(file)
                self.assertEqual((made["nbformat"], made["nbformat_minor"]), (4, 5))
                self.assertEqual(len({cell["id"] for cell in made["cells"]}), len(made["cells"]))
                texts = ["".join(cell["source"]) for cell in made["cells"]]
                code = [text for cell, text in zip(made["cells"], texts) if cell["cell_type"] == "code" and text.startswith("%%bash")]
                self.assertEqual(code, ["%%bash\n" + block.strip("\n") for block in blocks])
                self.assertNotIn("<!-- check", "\n".join(texts))
                for script in re.findall(r"python3 (docs/course/\S+\.py)", "\n".join(code)):
                    self.assertTrue(os.path.exists(os.path.join(out, script)), script)

    def test_folder_without_pages(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([sys.executable, SCRIPT, empty, "-o", empty], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("expected pages (*.md), got none", done.stderr)


if __name__ == "__main__":
    unittest.main()
