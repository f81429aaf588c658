"""check_docs.py finds what it is there for, and nothing else."""
import unittest

from checked_project import check

TOOL = "check_docs.py"


class CheckDocs(unittest.TestCase):
    def expect(self, files, *errors):
        files = {"README.md": "", **files}
        self.assertEqual(check(TOOL, files), (list(errors), 1 if errors else 0))

    def test_what_is_there_may_be_named(self):
        self.expect({
            "README.md": "# A `b`, c\n[a](docs/a.md), [h](#a-b-c), "
                         "[w](https://example.org/none.md)\n",
            "docs/a.md": "[up](../README.md#a-b-c) `base/error`, `error.h`, "
                         "`src/base/`, `seqconv/ops/talk.h`,\n"
                         "`src/NOUN.cpp`, `example.cpp`, `runs/none.txt`, "
                         "`src/base/x_*.cpp` "
                         "src/base/error.cpp.\n```\n[no](link.md)\n```\n",
            "include/seqconv/ops/talk.h": "",
            "src/base/error.h": "/// semantics.md 3.1, 8.2 and\n",
            "src/base/error.cpp": "// (semantics.md\n/// 8.2), semantics 3\n",
            "docs/semantics.md": "## 3. A\n### 3.1 B\n| 8.2 | `tests/a_test.cpp` "
                                 "`Suite.Name` `tests/a.py` `test_it` |\n",
            "tests/a_test.cpp": "TEST_P(\n    Suite,\n    Name) {}\n",
            "tests/a.py": "def test_it():\n",
            ".ci/run": "../shared/golden\n",
        })

    def test_links_that_lead_nowhere_are_named(self):
        self.expect(
            {
                "README.md": "# A\n[a](docs/b.md) [b](#b)\n",
                "docs/a.md": "[a](../README.md#c)\n[b](../../elsewhere.md)\n",
            },
            "README.md:2: the link docs/b.md leads nowhere",
            "README.md:2: README.md has no heading #b",
            "docs/a.md:1: README.md has no heading #c",
            "docs/a.md:2: the link ../../elsewhere.md leads nowhere")

    def test_files_that_are_not_there_are_named(self):
        self.expect(
            {
                "src/base/error.cpp": "",
                "README.md": "`src/base/gone.cpp`, `base/gone` and `gone.h`\n"
                             "```\nbash src/run.sh\n```\n",
            },
            "README.md:1: no file is called gone.h",
            "README.md:1: base/gone is not there",
            "README.md:1: src/base/gone.cpp is not there",
            "README.md:3: src/run.sh is not there")

    def test_numbers_that_are_not_there_are_named(self):
        self.expect(
            {
                "docs/semantics.md": "### 3.1 A\n",
                "src/a.h": "\n/// (semantics.md 3.1, 8.6)\n",
                "src/b.h": "/// (semantics\n/// 3.2).\n",
            },
            "src/a.h:2: docs/semantics.md has no number 8.6",
            "src/b.h:1: docs/semantics.md has no number 3.2")

    def test_tests_that_are_not_there_are_named(self):
        self.expect(
            {
                "docs/semantics.md": "`tests/a.cpp` `Suite.Name`, `Suite.Other`\n"
                                     "`tests/a.py` `test_none`\n",
                "tests/a.cpp": "TEST(Suite, Name) {}\nTEST(Suite, OtherOne) {}\n",
                "tests/a.py": "def test_none_at_all():\n",
            },
            "docs/semantics.md:1: tests/a.cpp has no test Suite.Other",
            "docs/semantics.md:2: tests/a.py has no test test_none")

    def test_references_to_the_outside_are_named(self):
        self.expect(
            {
                "src/a.cpp": "// seam 3\n// seamless, /worker, a/work\n",
                "tools/a.sh": "cd /work/x\ndata=../shared/data\n",
                "tests/a.py": 'ROOT.parent / "shared/data"\n',
                ".ci/run": "# seams\n",
            },
            ".ci/run:1: names seams, which is not in the repository",
            "src/a.cpp:1: names seams, which is not in the repository",
            "tests/a.py:1: names ../shared, which is not in the repository",
            "tools/a.sh:1: names /work, which is not in the repository",
            "tools/a.sh:2: names ../shared, which is not in the repository")

    def test_a_folder_without_documents_is_an_error(self):
        self.assertEqual(check(TOOL, {"src/a.cpp": ""}), ([], 1))


if __name__ == "__main__":
    unittest.main()
