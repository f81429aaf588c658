#!/usr/bin/env bash
# Sets up, builds and runs every test.
#
#   bash tools/test.sh
#
# First the release build with warnings as errors, then the layers without
# LibTorch under ASan and UBSan (LibTorch itself is not instrumented). Tests of
# these layers run there alone, but for those of the kernels, which the optimiser
# changes most: they run in both. Where nvcc is found, the operators' CUDA library
# is built too, and tested if there is a GPU (tools/gpu_check.sh does more). Golden
# data are those of the folder that SEQCONV_GOLDEN names. Where it names one, or
# with SEQCONV_GOLDEN_REQUIRED=1, missing data is a failure, and so is a skipped
# test but for what this machine lacks. Where the time goes: tools/build_times.py.
# What takes too long for here: tools/check_long.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly JOBS=2

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

bash tools/setup.sh --python-tests

export SEQCONV_PYTHON_REQUIRED=1
if [ -n "${SEQCONV_GOLDEN:-}" ]; then
  export SEQCONV_GOLDEN_REQUIRED=1
fi

# One folder for both: what has to do with CUDA is in targets of its own.
cuda=OFF
if command -v nvcc > /dev/null; then
  cuda=ON
  say "Building build/release, and the operators for CUDA"
else
  say "Building build/release; no nvcc: the operators for CUDA are not built"
fi
cmake --preset ci -DSEQCONV_CUDA=$cuda
cmake --build --preset ci -j "$JOBS"

say "Building the torch-free layers with sanitizers in build/dev"
cmake --preset dev
cmake --build --preset dev -j "$JOBS" --target torch_free_tests

failed=no
say "Tests under ASan and UBSan"
ctest --test-dir build/dev -L torch_free -j "$JOBS" --output-on-failure \
  --no-tests=error || failed=yes

say "All tests"
ctest --preset ci -j "$JOBS" || failed=yes

say "Skipped tests"
python3 tools/check_skips.py build/dev build/release ||
  [ "${SEQCONV_GOLDEN_REQUIRED:-}" != 1 ] || failed=yes

say "Done"
[ "$failed" = no ]
