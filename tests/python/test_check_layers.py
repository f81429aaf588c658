"""check_layers.py finds what it is there for, and nothing else."""
import unittest

from checked_project import check

TOOL = "check_layers.py"

BASE = {"src/base/error.h": "#include <string>\n"}
OPS = {"include/seqconv/ops/talk.h": "#include <ATen/core/Tensor.h>\n"}


class CheckLayers(unittest.TestCase):
    def expect(self, files, *errors, arrows=0):
        printed, code = check(TOOL, files)
        self.assertEqual(printed, [*errors, f"12 layers, {arrows} arrows, 0 circles"])
        self.assertEqual(code, 1 if errors else 0)

    def test_includes_that_point_downward_are_right(self):
        self.expect({
            **BASE, **OPS,
            "src/text/corpus/a.cpp": '#include "base/error.h"\n#include "text/b.h"\n'
                                     "#include <vector>\n",
            "src/text/b.h": "",
            "src/libtorch/nn/a.cpp": '#include "seqconv/ops/talk.h"\n'
                                     '#include "base/error.h"\n#include <torch/nn.h>\n',
            "src/cli/main.cpp": '#include "base/error.h"\n#include "cli/v.h"\n',
            "src/cli/v.h": "",
        }, arrows=3)

    def test_an_include_upward_or_sideways_is_named(self):
        self.expect(
            {
                **BASE,
                "src/text/a.h": "",
                "src/metrics/a.cpp": "\n  #  include <text/a.h>\n",
                "src/base/a.cpp": '#include "text/a.h"\n',
            },
            'src/base/a.cpp:1: base does not stand on text, but includes "text/a.h"',
            'src/metrics/a.cpp:2: metrics does not stand on text, but includes "text/a.h"',
            arrows=2)

    def test_an_include_of_a_room_above_is_named(self):
        self.expect(
            {
                "src/libtorch/models/mixer.h": "",
                "src/libtorch/nn/a.cpp": '#include "libtorch/models/mixer.h"\n',
                "src/text/corpus/batch.h": "",
                "src/text/a.cpp": '#include "text/corpus/batch.h"\n',
            },
            'src/libtorch/nn/a.cpp:1: libtorch/nn does not stand on libtorch/models, but '
            'includes "libtorch/models/mixer.h"',
            'src/text/a.cpp:1: text does not stand on text/corpus, but includes '
            '"text/corpus/batch.h"')

    def test_the_operators_stand_on_little(self):
        self.expect(
            {
                "src/search/search.h": "",
                "src/libtorch/nn/a.cpp": '#include "search/search.h"\n',
                "src/libtorch/ops/a.cpp": '#include "search/search.h"\n',
            },
            'src/libtorch/ops/a.cpp:1: libtorch/ops does not stand on search, but includes '
            '"search/search.h"', arrows=1)

    def test_torch_in_a_layer_without_it_is_named(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/util/Half.h"):
            self.expect(
                {"src/kernels/a.cpp": f"#include <{header}>\n"},
                f"src/kernels/a.cpp:1: is free of LibTorch, but includes <{header}>")

    def test_torch_through_other_headers_is_named(self):
        self.expect(
            {
                **OPS,
                "src/train/run.h": '#include "seqconv/ops/talk.h"\n',
                "src/cli/train.cpp": '\n#include "train/run.h"\n',
                "src/train/saved_state.cpp": '#include "train/run.h"\n',
            },
            'src/cli/train.cpp:1: is free of LibTorch, but gets it through "train/run.h" -> '
            '"seqconv/ops/talk.h" -> <ATen/core/Tensor.h>',
            'src/train/saved_state.cpp:1: is free of LibTorch, but gets it through "train/run.h" '
            '-> "seqconv/ops/talk.h" -> <ATen/core/Tensor.h>', arrows=1)

    def test_public_headers_include_public_headers_alone(self):
        self.expect(
            {
                **BASE,
                "include/seqconv/runtime.h": '#include "base/error.h"\n'
                                             '#include "seqconv/version.h"\n',
                "include/seqconv/version.h": "",
            },
            'include/seqconv/runtime.h:1: public does not stand on base, but includes '
            '"base/error.h"')

    def test_headers_that_are_not_there_are_named(self):
        self.expect(
            {
                **BASE,
                "src/base/a.cpp": '#include "base/gone.h"\n#include "error.h"\n'
                                  '#include "../base/error.h"\n#include "seqconv/gone.h"\n',
            },
            'src/base/a.cpp:1: "base/gone.h" is not there',
            'src/base/a.cpp:2: "error.h" is not there',
            'src/base/a.cpp:3: "../base/error.h" is not there',
            'src/base/a.cpp:4: "seqconv/gone.h" is not there')

    def test_files_outside_of_every_layer_are_named(self):
        self.expect(
            {"src/utils/a.cpp": "", "src/loose.cpp": ""},
            "src/loose.cpp:1: is in no layer of tools/check_layers.py",
            "src/utils/a.cpp:1: is in no layer of tools/check_layers.py")

    def test_a_source_that_is_not_built_is_named(self):
        self.expect(
            {
                "cmake/Own.cmake": "add_library(own src/base/own.cpp)\n",
                "src/base/CMakeLists.txt": "add_library(base here.cpp)\n",
                "src/base/here.cpp": "",
                "src/base/here.h": "",
                "src/base/own.cpp": "",
                "src/base/there.cpp": "",
            },
            "src/base/there.cpp:1: is in no CMakeLists.txt")

    def test_a_folder_without_sources_is_an_error(self):
        self.assertEqual(check(TOOL, {"README.md": ""}), ([], 1))


if __name__ == "__main__":
    unittest.main()
