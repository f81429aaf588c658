#!/usr/bin/env bash
# What to run once on a machine with an NVIDIA GPU and the CUDA toolkit.
#
#   bash tools/gpu_check.sh [--quick] [--json FILE]
#
# Builds the preset `cuda` with the operators' tests, runs them on the device
# (C++ and Python), then a selection under compute-sanitizer (memcheck,
# racecheck, synccheck), then benchmarks/ops_cuda_bench.py. Needs a torch that
# has CUDA (SEQCONV_PYTHON, default .venv/bin/python) with pytest. Results are
# recorded by hand in docs/benchmarks.md. SEQCONV_CUDA_ARCHITECTURES chooses
# what to compile for (default: this GPU).
set -euo pipefail
cd "$(dirname "$0")/.."

bench_arguments=()
while (($# > 0)); do
  case "$1" in
    --quick) bench_arguments+=(--quick) ;;
    --json)
      bench_arguments+=(--json "${2:?--json needs a file}")
      shift
      ;;
    *)
      echo "usage: gpu_check.sh [--quick] [--json FILE]" >&2
      exit 2
      ;;
  esac
  shift
done

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

if ! nvidia-smi -L; then
  echo "gpu_check.sh: found no NVIDIA GPU" >&2
  exit 1
fi
python=${SEQCONV_PYTHON:-.venv/bin/python}
torch_dir=$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent)')
capability=$("$python" -c 'import torch; print("%d%d" % torch.cuda.get_device_capability())')

say "Building build/cuda for compute capability $capability"
cmake --preset cuda -DSEQCONV_TORCH_DIR="$torch_dir" \
  -DCMAKE_CUDA_ARCHITECTURES="${SEQCONV_CUDA_ARCHITECTURES:-$capability}"
cmake --build build/cuda -j "$(nproc)" \
  --target seqconv_ops_cuda ops_test cuda_host_test

# The tests load LibTorch's CUDA half, which finds the rest by its run paths.
export LD_LIBRARY_PATH="$torch_dir/lib:${LD_LIBRARY_PATH:-}"
export SEQCONV_OPS_LIBRARY=$PWD/build/cuda/lib/libseqconv_ops.so
export SEQCONV_OPS_CUDA_LIBRARY=$PWD/build/cuda/lib/libseqconv_ops_cuda.so
failed=()
run() {
  say "$1"
  shift
  "$@" || failed+=("$*")
}

run "The kernels' bodies on the host" build/cuda/bin/cuda_host_test
run "The operators' tests, on the CPU and the GPU" build/cuda/bin/ops_test
run "The operators from Python" \
  "$python" -m pytest -q -rs tests/python/test_ops_cuda.py

# Small: the tools are a hundred times slower than the kernels.
readonly SELECTION='*WithRenormalizedEdges/*OnCuda:*WithEveryNormalisation/*OnCuda:*MatchesTheReferenceWithLengths/*Cuda:*AStepWritesIntoAStridedState/*OnCuda:*WindowsMayExceed*/Cuda'
readonly PYTHON_SELECTION='test_two_runs or (test_cumulative_average_equals_the_cpu and bfloat16) or test_steps_in_a_graph or (test_conv_equals_the_cpu and bfloat16 and 31)'
for tool in memcheck racecheck synccheck; do
  run "compute-sanitizer $tool, C++" \
    compute-sanitizer --tool "$tool" --error-exitcode 1 \
    build/cuda/bin/ops_test --gtest_filter="$SELECTION"
  run "compute-sanitizer $tool, Python" \
    compute-sanitizer --tool "$tool" --error-exitcode 1 \
    "$python" -m pytest -q tests/python/test_ops_cuda.py -k "$PYTHON_SELECTION"
done

run "Benchmark" "$python" benchmarks/ops_cuda_bench.py "${bench_arguments[@]}"

say "Done"
if ((${#failed[@]} > 0)); then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
