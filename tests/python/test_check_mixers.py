"""check_mixers.py finds what it is there for, and nothing else."""
import unittest

from checked_project import check

TOOL = "check_mixers.py"

TABLE = """## A mixer that uses it

| file | what goes there |
|---|---|
| `src/model/mixers.h` | the kind |
| `src/libtorch/nn/NOUN.h` | the module |
| `src/libtorch/models/mixer.cpp` | a case |
| `src/runtime/` | a case |
"""
PROJECT = {
    "docs/adding_an_operator.md": TABLE,
    "src/model/mixers.h": "enum class MixerKind { kTalk };",
    "src/libtorch/nn/talk.h": "TORCH_MODULE(Talk);",
    "src/libtorch/models/mixer.cpp":
        '#include "libtorch/nn/talk.h"\ncase MixerKind::kTalk: return Talk(o);',
    "src/model/checkpoint/fairseq_mixers.cpp": "{MixerKind::kTalk}",
}


class CheckMixers(unittest.TestCase):
    def expect(self, files, *errors):
        self.assertEqual(check(TOOL, {**PROJECT, **files}),
                         (list(errors), 1 if errors else 0))

    def unlisted(self, path):
        return (f"{path}: knows kTalk, but docs/adding_an_operator.md does not "
                "list it")

    def test_listed_files_may_know_a_kind(self):
        self.expect({"src/runtime/a.cpp": "case MixerKind::kTalk:",
                     "src/libtorch/ops/talk.cpp": "ConvKind::kTalk"})

    def test_others_that_name_a_kind_are_named(self):
        self.expect({"src/a/a.cpp": "if (kind == MixerKind::kTalk)",
                     "src/a/b.cpp": "using enum MixerKind; case kTalk:"},
                    self.unlisted("src/a/a.cpp"), self.unlisted("src/a/b.cpp"))

    def test_a_second_file_of_a_folder_is_named(self):
        self.expect({"src/runtime/a.cpp": "case MixerKind::kTalk:",
                     "src/runtime/b.cpp": "case MixerKind::kTalk:"},
                    self.unlisted("src/runtime/b.cpp"))

    def test_others_that_include_its_module_are_named(self):
        self.expect({"src/a/a.cpp": '#include "libtorch/nn/talk.h"'},
                    self.unlisted("src/a/a.cpp"))

    def test_files_of_its_module_are_counted(self):
        self.expect({"src/libtorch/nn/talk.cpp": ""}, self.unlisted("src/libtorch/nn/talk.cpp"))

    def test_a_list_that_grows_is_an_error(self):
        rows = "".join(f"| `src/libtorch/models/f{i}.cpp` | more |\n" for i in range(5))
        self.expect({"docs/adding_an_operator.md": TABLE + rows},
                    "docs/adding_an_operator.md: a mixer may need 8 files, but "
                    "the list has 9")


if __name__ == "__main__":
    unittest.main()
