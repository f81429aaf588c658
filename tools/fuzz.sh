#!/usr/bin/env bash
# Feeds mutated files to the readers of foreign bytes, one after the other.
#
#   bash tools/fuzz.sh [SECONDS [TARGET ...]]     default 60 seconds each, all targets
#
# Needs clang 16 or later with its fuzzer library (CLANG, default clang++). Begins with what
# tests/fuzz/make_seeds.py writes; new inputs are kept in build/fuzz/corpus/TARGET, and
# what breaks a reader stays in build/fuzz as TARGET-crash-*. Prints a line for each target:
# inputs run, edges covered, inputs kept.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SECONDS_EACH=${1:-60}
readonly ALL=(pytorch safetensors config toml dictionary codes pieces binarised state
  metrics requests story packed shortlist utf8 moses)
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=("${ALL[@]}")

cmake --preset fuzz -DCMAKE_CXX_COMPILER="${CLANG:-clang++}"
cmake --build build/fuzz --target pytorch_fuzz readers_fuzz -j 2
python3 tests/fuzz/make_seeds.py build/fuzz/seeds
cd build/fuzz

failed=()
for target in "${targets[@]}"; do
  program=bin/readers_fuzz
  [ "$target" = pytorch ] && program=bin/pytorch_fuzz
  mkdir -p "corpus/$target" "seeds/$target"
  # Each reader's own memory is bounded by the file's: 1 GiB is far more.
  if ! SEQCONV_FUZZ_TARGET=$target "$program" "corpus/$target" "seeds/$target" \
    -max_total_time="$SECONDS_EACH" -max_len=65536 -rss_limit_mb=1024 -timeout=10 \
    -artifact_prefix="$target-" -print_final_stats=1 > "$target.log" 2>&1; then
    failed+=("$target")
    tail -n 40 "$target.log"
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log")
  edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$target.log" | tail -n 1)
  printf '%-12s %12s runs %8s edges %6s inputs\n' "$target" "${runs:-?}" "${edges:-?}" \
    "$(find "corpus/$target" -type f | wc -l)"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
