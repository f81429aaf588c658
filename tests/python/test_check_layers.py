"""check_layers.py finds what it is there for, and nothing else."""
import unittest

from checked_project import check

TOOL = "check_layers.py"


BASE = {"include/seqconv/base/error.h": "#include <string>\n"}
OPS = {"include/seqconv/ops/talk.h": "#include <ATen/core/Tensor.h>\n"}


class CheckLayers(unittest.TestCase):
    def expect(self, files, *errors):
        self.assertEqual(check(TOOL, files), (list(errors), 1 if errors else 0))

    def test_includes_that_point_downward_are_right(self):
        self.expect({
            **BASE, **OPS,
            "src/data/a.cpp": '#include "seqconv/base/error.h"\n'
                              '#include "b.h"\n#include <vector>\n',
            "src/data/b.h": "",
            "src/nn/a.cpp": '#include "seqconv/ops/talk.h"\n'
                            '#include "seqconv/base/error.h"\n'
                            "#include <torch/nn.h>\n",
            "cli/main.cpp": '#include "seqconv/base/error.h"\n#include "v.h"\n',
            "cli/v.h": "",
        })

    def test_an_include_upward_or_sideways_is_named(self):
        self.expect(
            {
                **BASE,
                "include/seqconv/text/a.h": "",
                "src/metrics/a.cpp": "\n  #  include <seqconv/text/a.h>\n",
                "src/base/a.cpp": '#include "seqconv/text/a.h"\n',
            },
            'src/base/a.cpp:1: base does not stand on text, but includes '
            '"seqconv/text/a.h"',
            'src/metrics/a.cpp:2: metrics does not stand on text, but '
            'includes "seqconv/text/a.h"')

    def test_torch_in_a_layer_without_it_is_named(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/util/Half.h"):
            self.expect(
                {"src/kernels/a.cpp": f"#include <{header}>\n"},
                "src/kernels/a.cpp:1: kernels is free of LibTorch, but "
                f"includes <{header}>")

    def test_torch_through_other_headers_is_named(self):
        self.expect(
            {
                **OPS,
                "include/seqconv/train/run.h":
                    '#include "seqconv/ops/talk.h"\n',
                "cli/train.cpp": '\n#include "seqconv/train/run.h"\n',
            },
            'cli/train.cpp:1: cli is free of LibTorch, but gets it through '
            '"seqconv/train/run.h" -> "seqconv/ops/talk.h" -> '
            "<ATen/core/Tensor.h>")

    def test_private_headers_stay_private(self):
        self.expect(
            {
                **BASE,
                "src/base/secret.h": "",
                "include/seqconv/base/open.h":
                    '#include "../../../src/base/secret.h"\n',
                "src/base/own.cpp": '#include "base/secret.h"\n',
                "src/text/a.cpp": '#include "base/secret.h"\n',
                "src/data/a.cpp": '#include "../base/secret.h"\n',
            },
            'include/seqconv/base/open.h:1: a public header includes the '
            'private "../../../src/base/secret.h"',
            'src/data/a.cpp:1: data includes "../base/secret.h", which is '
            'private to base',
            'src/text/a.cpp:1: text includes "base/secret.h", which is '
            'private to base')

    def test_headers_that_are_not_there_are_named(self):
        self.expect(
            {
                "src/base/a.cpp": '#include "seqconv/base/gone.h"\n'
                                  '#include "gone.h"\n',
            },
            'src/base/a.cpp:1: "seqconv/base/gone.h" is not there',
            'src/base/a.cpp:2: "gone.h" is not there')

    def test_files_outside_of_every_layer_are_named(self):
        self.expect(
            {"src/utils/a.cpp": "", "src/loose.cpp": ""},
            "src/loose.cpp:1: is in no layer of tools/check_layers.py",
            "src/utils/a.cpp:1: is in no layer of tools/check_layers.py")

    def test_a_folder_without_sources_is_an_error(self):
        self.assertEqual(check(TOOL, {"README.md": ""}), ([], 1))


if __name__ == "__main__":
    unittest.main()
