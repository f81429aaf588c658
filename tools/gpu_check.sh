#!/usr/bin/env bash
# What to run once on a machine with an NVIDIA GPU.
#
#   bash tools/gpu_check.sh [--no-build] [--out DIR] [STEP ...]
#
# Steps, all of them in this order unless some are named; each can be repeated:
#
#   tests     the tests of operators and models in C++ and Python, on both
#             the CPU and the GPU
#   train     training steps beside torch.nn.Transformer, in small and large
#             batches; where Multi30k is prepared (tools/prepare_multi30k.sh) a
#             whole training there and its BLEU, in runs/multi30k/dynamicconv-cuda
#   processes where there are several GPUs and Multi30k is prepared: the losses
#             of its first updates by two processes and by one, and the end of a
#             run of which a process is killed (tools/check_processes.py)
#   quick     benchmarks/ops_cuda_bench.py at a few sizes, into DIR/quick.json
#   bench     the whole benchmark, into DIR/bench.json
#   sanitize  a selection of the tests under compute-sanitizer
#
# In parts, for machines with time limits: the last two have smaller steps,
# bench:kernels, bench:averages, bench:short_convs, bench:attention and bench:table_6
# (into DIR/bench-kernels.json and so on), and memcheck, racecheck and synccheck.
# When a step fails, the next ones still run; the exit code is 1. All output
# also goes to the end of DIR/gpu_check.log. DIR is build/gpu_check by default.
#
# First the preset `cuda` is built, which needs the CUDA toolkit and what
# tools/setup.sh installs. With --no-build these must have been brought, built
# for this GPU and against the same version of LibTorch:
#
#   build/cuda/lib/libseqconv_ops.so   build/cuda/lib/libseqconv_ops_cuda.so
#   build/cuda/bin/ops_test            build/cuda/bin/cuda_host_test
#   build/cuda/bin/models_test         build/cuda/bin/train_step_bench
#   build/cuda/bin/seqconv             build/cuda/lib/libseqconv_engine.so
#   build/cuda/lib/libseqconv_nccl.so
#
# (programs for tests, train, processes and sanitize only, the last library for
# processes). Python is SEQCONV_PYTHON, or else
# .venv/bin/python or python3, whichever has torch; tests need pytest too.
# SEQCONV_CUDA_ARCHITECTURES chooses what to compile for (default: this GPU).
# Golden data come from SEQCONV_GOLDEN, or tests/golden of the folder where the
# programs were built; without them those tests fail.
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
fail() {
  echo "gpu_check.sh: $*" >&2
  exit "${status:-1}"
}

build=yes out=$PWD/build/gpu_check steps=()
while (($# > 0)); do
  case "$1" in
    --no-build) build=no ;;
    --out)
      [ -n "${2:-}" ] || status=2 fail "--out needs a folder"
      out=$(cd "$caller" && realpath -m "$2")
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    tests | train | processes | quick | bench | sanitize | memcheck | racecheck | synccheck | \
      bench:kernels | bench:averages | bench:short_convs | \
      bench:attention | bench:table_6)
      steps+=("$1")
      ;;
    *) status=2 fail "unknown step or option '$1' (see --help)" ;;
  esac
  shift
done
((${#steps[@]} > 0)) || steps=(tests train processes quick bench sanitize)

# Small: the tools are a hundred times slower than the kernels.
readonly SELECTION='*WithRenormalizedEdges/*OnCuda:*WithEveryNormalisation/*OnCuda:*MatchesTheReferenceWithLengths/*Cuda:*AStepWritesIntoAStridedState/*OnCuda:*AStepChangesAStridedStateInPlace/Cuda:*WindowsMayExceed*/Cuda:*ShortConvDeviceTest*/OnCuda'
readonly PYTHON_SELECTION='test_two_runs or (test_short_conv_steps and bfloat16) or (test_cumulative_average_equals_the_cpu and bfloat16) or (test_steps and bfloat16) or (test_conv_equals_the_cpu and bfloat16 and 31)'

summary=()
failed=no

# A title, then a command whose failure is noted.
run() {
  local title=$1 start=$SECONDS result=passed
  shift
  printf '\n== %s\n' "$title"
  "$@" || result="FAILED (exit code $?)"
  summary+=("$title: $result, $((SECONDS - start)) s")
  echo "== ${summary[-1]}"
  [ "$result" = passed ] || failed=yes
}

find_python() {
  local candidates=(.venv/bin/python python3) candidate
  [ -z "${SEQCONV_PYTHON:-}" ] || candidates=("$SEQCONV_PYTHON")
  for candidate in "${candidates[@]}"; do
    if "$candidate" -c 'import torch' 2>/dev/null; then
      python=$candidate
      return
    fi
  done
  fail "none of these has torch: ${candidates[*]}"
}

build_all() {
  local capability
  capability=$("$python" -c 'import torch; print("%d%d" % torch.cuda.get_device_capability())') &&
    cmake --preset cuda -DSEQCONV_TORCH_DIR="$torch_dir" \
      -DSEQCONV_BENCHMARKS=ON \
      -DCMAKE_CUDA_ARCHITECTURES="${SEQCONV_CUDA_ARCHITECTURES:-$capability}" &&
    cmake --build build/cuda -j "$(nproc)" \
      --target seqconv_ops_cuda ops_test models_test cuda_host_test \
      train_step_bench seqconv seqconv_engine
}

# What the steps need must be there: tests without a library would only skip.
require_built() {
  local needed=(lib/libseqconv_ops.so lib/libseqconv_ops_cuda.so) file
  case " ${steps[*]} " in
    *" tests "* | *" sanitize "* | *check" "*)
      needed+=(bin/ops_test bin/cuda_host_test)
      ;;
  esac
  case " ${steps[*]} " in
    *" tests "*) needed+=(bin/models_test) ;;
  esac
  case " ${steps[*]} " in
    *" train "*) needed+=(bin/train_step_bench) ;;
  esac
  case " ${steps[*]} " in
    *" train "* | *" processes "*)
      needed+=(bin/seqconv lib/libseqconv_engine.so)
      ;;
  esac
  for file in "${needed[@]}"; do
    [ -e "build/cuda/$file" ] || fail "build/cuda/$file is missing (see --help)"
  done
}

tests() {
  run "The kernels' bodies on the host" build/cuda/bin/cuda_host_test
  run "The operators' tests in C++" build/cuda/bin/ops_test
  run "Models on the GPU equal those on the CPU" \
    build/cuda/bin/models_test --gtest_filter='ModelsOnCuda.*'
  run "The operators' tests in Python" \
    "$python" -m pytest -q -rs tests/python/test_ops_cuda.py
}

# Ours and PyTorch's in turns: batches of the tests on the CPU, and full ones.
train() {
  local tokens turn block precision
  for tokens in 864 16384; do
    for turn in 1 2 3; do
      for block in dynamicconv self_attention; do
        for precision in float32 bfloat16 float16; do
          run "A training step, $tokens tokens, $block, $precision" \
            build/cuda/bin/train_step_bench --device cuda --block "$block" \
            --precision "$precision" --tokens "$tokens" --length 32 --repeats 20
        done
      done
      run "A training step, $tokens tokens, torch.nn.Transformer" \
        "$python" benchmarks/train_rival.py --device cuda \
        --tokens "$tokens" --length 32 --repeats 20
    done
  done
  if [ -e runs/multi30k/data/train.de ]; then
    run "Multi30k, trained and translated on the GPU" \
      env DEVICE=cuda SEQCONV="$PWD/build/cuda/bin/seqconv" \
      bash tools/reproduce_multi30k.sh
  else
    printf '\n== Multi30k is left out: it is not prepared\n'
  fi
}

gpus() { "$python" -c 'import torch; print(torch.cuda.device_count())'; }

processes() {
  if [ "$(gpus)" -le 1 ]; then
    printf '\n== Processes are left out: they need a GPU each, and there is one\n'
  elif [ ! -e runs/multi30k/data/train.de ]; then
    printf '\n== Processes are left out: Multi30k is not prepared\n'
  else
    run "Two processes train as one does, and end together" \
      "$python" tools/check_processes.py --program build/cuda/bin/seqconv
  fi
}

benchmark() {
  local name=$1
  shift
  run "Benchmark: $name" \
    "$python" benchmarks/ops_cuda_bench.py --json "$out/$name.json" "$@"
}

# All our kernels are instances of run_body (src/kernels/cuda/launch.cuh).
sanitize() {
  local tool=$1 python_selection=$PYTHON_SELECTION
  local checked=(compute-sanitizer --tool "$tool" --error-exitcode 1
    --kernel-name kns=run_body)
  if [ "$tool" = memcheck ]; then
    # LibTorch's caching allocator makes many tensors one allocation, and what
    # reaches beyond a tensor is found only at the end of that. Without it,
    # graphs cannot be captured. LibTorch's own calls may fail: it asks that way.
    checked=(env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "${checked[@]}"
      --padding 512 --report-api-errors no)
    python_selection="($python_selection) and not in_a_graph"
  fi
  run "$tool, C++" \
    "${checked[@]}" build/cuda/bin/ops_test --gtest_filter="$SELECTION"
  run "$tool, Python" "${checked[@]}" \
    "$python" -m pytest -q tests/python/test_ops_cuda.py -k "$python_selection"
}

main() {
  printf '\n== %s: %s\n' "$(date -u '+%F %T')" "${steps[*]}"
  command -v compute-sanitizer > /dev/null || PATH=/usr/local/cuda/bin:$PATH
  nvidia-smi -L || true
  find_python
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    fail "torch of $python finds no CUDA device"
  torch_dir=$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent)')
  if [ "$build" = yes ]; then
    run "Building build/cuda" build_all
    [ "$failed" = no ] || fail "the build failed"
  fi
  require_built

  # Programs from elsewhere have other run paths. A missing device is a failure.
  export LD_LIBRARY_PATH="$PWD/build/cuda/lib:$torch_dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export SEQCONV_OPS_LIBRARY=$PWD/build/cuda/lib/libseqconv_ops.so
  export SEQCONV_OPS_CUDA_LIBRARY=$PWD/build/cuda/lib/libseqconv_ops_cuda.so
  export SEQCONV_TORCH_DIR=$torch_dir SEQCONV_CUDA_REQUIRED=1 PYTHONUNBUFFERED=1

  local step tool
  for step in "${steps[@]}"; do
    case "$step" in
      tests) tests ;;
      train) train ;;
      processes) processes ;;
      quick) benchmark quick --quick ;;
      bench) benchmark bench ;;
      bench:*) benchmark "bench-${step#bench:}" --parts "${step#bench:}" ;;
      sanitize)
        for tool in memcheck racecheck synccheck; do sanitize "$tool"; done
        ;;
      *) sanitize "$step" ;;
    esac
  done
  printf '\n'
  printf '%s\n' "${summary[@]}"
  [ "$failed" = no ]
}

mkdir -p "$out"
main 2>&1 | tee -a "$out/gpu_check.log"
