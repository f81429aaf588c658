#!/usr/bin/env bash
# Sets up, builds and runs every test.
#
#   bash tools/test.sh
#
# First the release build with warnings as errors, then the layers without
# LibTorch under ASan and UBSan (LibTorch itself is not instrumented). Tests of
# these layers run there alone, but for those of the kernels, which the optimiser
# changes most: they run in both. If nvcc is found, the operators' CUDA library
# is built too, and tested if there is a GPU (tools/gpu_check.sh does more). All
# tests read the data in tests/, and the text of the folder that SEQCONV_DATA names.
# If SEQCONV_GOLDEN names a folder of golden data, the tests that read such run once
# more on that. A skipped test is a failure, but for what this machine lacks.
# tools/build_times.py tells what takes the time, tools/check_long.sh does what takes
# too much of it.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly JOBS=2

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

bash tools/setup.sh --python-tests

export SEQCONV_PYTHON_REQUIRED=1

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
cmake --preset ci-dev
cmake --build --preset ci-dev -j "$JOBS"

failed=no
# run_tests TITLE [ARGUMENT OF CTEST ...]: the sanitized ones, then the others.
run_tests() {
  say "$1 under ASan and UBSan"
  ctest --test-dir build/dev -L torch_free "${@:2}" -j "$JOBS" \
    --output-on-failure --no-tests=error || failed=yes
  say "$1"
  ctest --preset ci "${@:2}" -j "$JOBS" || failed=yes
  say "Skipped tests"
  python3 tools/check_skips.py build/dev build/release || failed=yes
}

(
  unset SEQCONV_GOLDEN
  run_tests "All tests"
  [ "$failed" = no ]
) || failed=yes
if [ -n "${SEQCONV_GOLDEN:-}" ]; then
  run_tests "Tests that read golden data, on that of SEQCONV_GOLDEN" -L golden
fi

say "Dearer than they should be"
python3 tools/build_times.py --budget

say "Done"
[ "$failed" = no ]
