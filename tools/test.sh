#!/usr/bin/env bash
# Sets up, builds and runs every test.
#
#   bash tools/test.sh
#
# First the release build with warnings as errors and all of its tests, then
# the layers without LibTorch again under ASan and UBSan (LibTorch itself is
# not instrumented). Where nvcc is found, the operators' CUDA library is built
# too (tools/gpu_check.sh runs it on a GPU). Tests against golden data read
# $SEQCONV_GOLDEN, default ../shared/golden; where that folder exists, or with
# SEQCONV_GOLDEN_REQUIRED=1, missing data is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SANITIZED=(base text metrics kernels data decode architecture checkpoint)
# A folder's target builds all that its CMakeLists.txt names.
sanitized_targets=()
for layer in "${SANITIZED[@]}"; do
  sanitized_targets+=("tests/$layer/all")
done
readonly JOBS=2

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

bash tools/setup.sh --python-tests

export SEQCONV_PYTHON_REQUIRED=1
if [ -d "${SEQCONV_GOLDEN:-../shared/golden}" ]; then
  export SEQCONV_GOLDEN_REQUIRED=1
fi

say "Building build/release"
cmake --preset ci
cmake --build --preset ci -j "$JOBS"

if command -v nvcc > /dev/null; then
  say "Building the operators for CUDA in build/cuda (no test runs on a device)"
  # With the flags of preset ci, so that ccache has what both compile.
  cmake --preset cuda -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
    -DCMAKE_CXX_FLAGS=-Wno-error=restrict
  cmake --build --preset cuda -j "$JOBS"
else
  say "No nvcc: the operators for CUDA are not built"
fi

say "Building the torch-free layers with sanitizers in build/dev"
cmake --preset dev
cmake --build --preset dev -j "$JOBS" --target "${sanitized_targets[@]}"

failed=no
say "Tests under ASan and UBSan"
for layer in "${SANITIZED[@]}"; do
  ctest --test-dir "build/dev/tests/$layer" -j "$JOBS" --output-on-failure \
    --no-tests=error || failed=yes
done

say "All tests"
ctest --preset ci -j "$JOBS" || failed=yes

say "Done"
[ "$failed" = no ]
