"""build_times.py reads the logs of ninja and ctest, and names what exceeds its share."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import build_times  # noqa: E402

OBJECT = "src/ops/CMakeFiles/seqconv_ops.dir/talk.cpp.o"


class BuildTimes(unittest.TestCase):
    def build(self, compiled, tested, name="dev"):
        """A folder in which one file took `compiled` seconds and one test `tested`."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        build = pathlib.Path(folder.name) / name
        (build / "Testing/Temporary").mkdir(parents=True)
        (build / ".ninja_log").write_text(
            f"# ninja log v5\n0\t999000\t0\t{OBJECT}\ta\n"  # an older time of the same file
            f"1000\t{1000 + 1000 * compiled}\t0\t{OBJECT}\tb\n")
        (build / "Testing/Temporary/LastTest.log").write_text(
            f"1/1 Testing: talk_test\n1/1 Test: talk_test\nTest time =  {tested:.2f} sec\n")
        return build

    def output(self, function, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            function(*arguments)
        return out.getvalue()

    def test_parts_files_and_tests_have_their_seconds(self):
        table = self.output(build_times.report, self.build(20, 3), 5)
        for row in "| everything | 20 |", "| src/ops | 20 |", "| ops: talk.cpp | 20 |", "| talk_test | 3 |":
            self.assertIn(row, table)

    def test_nothing_is_said_within_the_budget(self):
        self.assertEqual(self.output(build_times.report_excesses, self.build(20, 3)), "")

    def test_a_file_a_test_and_sums_beyond_the_budget_are_named(self):
        most = build_times.BUDGET["dev"]
        said = self.output(build_times.report_excesses, self.build(most["build"] + 1, most["tests"] + 1))
        for what in "all of the build", "all of the tests", "ops: talk.cpp", "talk_test":
            self.assertIn(f"dev: {what} took", said)

    def test_a_build_without_a_budget_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "no budget for other, only for release, dev"):
            build_times.report_excesses(self.build(1, 1, "other"))


if __name__ == "__main__":
    unittest.main()
