"""Bad input of every kind. Whatever comes, the program ends with the exit code
that the table states, kills nobody, and names on standard error what is wrong.

A family is a function in hostile/ that yields cases; to add one, add a line to
the list at the end of its file.
"""

import concurrent.futures
import os
import pathlib
import resource
import shutil
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from hostile import (
    binarised_files,
    command_line,
    configurations,
    documents,
    flags,
    imports,
    inspections,
    language_models,
    led_files,
    model_folders,
    requests,
    shortlists,
)
from hostile.case import TRANSLATE, Case
from support import run

FEWEST_CASES = 200
FILES = [
    command_line,
    configurations,
    model_folders,
    led_files,
    requests,
    binarised_files,
    language_models,
    imports,
    inspections,
    shortlists,
    documents,
    flags,
]
FAMILIES = [family for file in FILES for family in file.FAMILIES]


class HostileInput(unittest.TestCase):
    counted = 0

    def check(self, family):
        cases = list(family())
        HostileInput.counted += len(cases)
        # Cases run side by side, and training locks its folder.
        outputs = [one.output for one in cases if one.output is not None]
        self.assertEqual(len(outputs), len(set(outputs)), "cases share a folder")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            complaints = [
                text for text in pool.map(Case.complaint, cases) if text
            ]
        if complaints:
            self.fail(f"{len(complaints)} of {len(cases)} cases:\n\n" +
                      "\n\n".join(complaints))

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.counted} hostile cases", file=sys.stderr)

    def test_there_are_enough_cases(self):
        # Those that cost nothing to list; all are counted at the end.
        families = [
            command_line.usage,
            command_line.numbers_on_the_command_line,
            configurations.configuration_values,
        ]
        self.assertGreaterEqual(
            sum(len(list(family())) for family in families), FEWEST_CASES
        )


for one in FAMILIES:
    setattr(HostileInput, f"test_{one.__name__}",
            lambda self, family=one: self.check(family))


class FullDisk(unittest.TestCase):
    """A limit on the size of files stands for a disk without room."""

    def train(self, folder, limit, *flags):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return run("train", support.config(), "--output", folder, *flags,
                   preexec_fn=limited)

    def test_a_new_run_says_what_it_could_not_write(self):
        for limit in (0, 100, 2000, 20000):
            with self.subTest(limit=limit):
                folder = support.scratch() / f"full{limit}"
                result = self.train(folder, limit)
                self.assertEqual(result.code, 1, result.message)
                self.assertIn("File too large", result.message)
                self.assertFalse((folder / "model.safetensors").exists())
                shutil.rmtree(folder, ignore_errors=True)

    def test_the_last_good_checkpoint_stays(self):
        folder = support.copy_model("full-resumed")
        before = (folder / "model.safetensors").read_bytes()
        state = (folder / "training/state.safetensors").read_bytes()
        result = self.train(folder, 20000, "--resume",
                            "--set", "training.max_updates=8")
        self.assertEqual(result.code, 1, result.message)
        self.assertIn("File too large", result.message)
        self.assertEqual(before, (folder / "model.safetensors").read_bytes())
        self.assertEqual(
            state, (folder / "training/state.safetensors").read_bytes())
        self.assertEqual(list(folder.rglob("*.tmp*")), [])
        self.assertEqual(
            run("translate", "--model", folder, *TRANSLATE, stdin=b"1\n").code,
            0)
        again = run("train", support.config(), "--output", folder, "--resume",
                    "--set", "training.max_updates=8")
        self.assertEqual(again.code, 0, again.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
