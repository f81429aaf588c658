"""How tools/check_processes.py compares runs, and finds the processes of a job."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_processes  # noqa: E402


def run(factor=1.0, **changes):
    """Records of three updates, with changes to the second one."""
    records = {
        update: {"target_tokens": 100 + update, "loss_base2": 12.5 - update,
                 "nll_base2": factor * (12.0 - update)} for update in (1, 2, 3)}
    records[2].update(changes)
    return records


def difference(wanted, got, updates=3):
    return check_processes.largest_difference(wanted, got, updates, 1e-5)


class Comparing(unittest.TestCase):
    def assert_told(self, got, text, wanted=None):
        with self.assertRaisesRegex(check_processes.Failure, text):
            difference(wanted or run(), got)

    def test_the_same_losses_differ_by_nothing(self):
        self.assertEqual(difference(run(), run()), 0)

    def test_the_largest_difference_of_any_update_is_given(self):
        self.assertAlmostEqual(difference(run(), run(nll_base2=10 * (1 + 8e-6))), 8e-6)
        self.assertAlmostEqual(difference(run(), run(1 - 9e-6)), 9e-6)

    def test_what_is_beyond_the_bound_is_told(self):
        self.assert_told(run(loss_base2=10.5 * (1 + 1.1e-5)), "loss_base2 of update 2")
        self.assert_told(run(1 - 1.1e-5), "nll_base2 of update 1")

    def test_what_is_no_number_is_told_in_both_or_one(self):
        for value in None, float("nan"), float("inf"):
            broken = run(loss_base2=value)
            self.assert_told(broken, "loss_base2 of update 2")
            self.assert_told(run(), "loss_base2 of update 2", wanted=broken)
            self.assert_told(broken, "loss_base2 of update 2", wanted=broken)

    def test_other_batches_and_missing_updates_are_told(self):
        self.assert_told(run(target_tokens=7), "update 2 has 7 target tokens, but 102")
        short = run()
        del short[3]
        self.assert_told(short, "no record of update 3")
        self.assert_told(run(), "no record of update 3", wanted=short)
        self.assertEqual(difference(short, short, updates=2), 0)


class Reading(unittest.TestCase):
    def test_train_records_are_found_among_others(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "training"
            folder.mkdir()
            lines = [{"kind": "start", "update": 0}, {"kind": "train", "update": 1},
                     {"kind": "validation", "update": 1}, {"kind": "train", "update": 2}]
            (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
            self.assertEqual(list(check_processes.read_updates(pathlib.Path(name))), [1, 2])

    def test_processes_are_known_by_mark_and_rank(self):
        jobs = [subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={
            **os.environ, check_processes.MARK: mark, "RANK": rank})
            for mark, rank in (("a", "0"), ("a", "1"), ("b", "1"))]
        try:
            # A process has its environment a moment after Popen returns.
            for job in jobs:
                job.stdin.write(b"here\n")
                job.stdin.flush()
                self.assertEqual(job.stdout.readline(), b"here\n")
            self.assertEqual(check_processes.processes_of("a", "RANK"),
                             {0: jobs[0].pid, 1: jobs[1].pid})
            self.assertEqual(check_processes.processes_of("a", "OMPI_COMM_WORLD_RANK"), {})
        finally:
            for job in jobs:
                job.kill()
                job.communicate()


if __name__ == "__main__":
    unittest.main()
