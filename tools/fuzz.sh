#!/usr/bin/env bash
# Feeds mutated files to the readers of foreign files for a while.
#
#   bash tools/fuzz.sh [SECONDS]     default 600
#
# Needs clang 14 or later with its fuzzer library. Begins with the files under
# tests/checkpoint; new ones are kept in build/fuzz/corpus, and what breaks the
# reader stays in build/fuzz as crash-*.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SECONDS_TO_RUN=${1:-600}

cmake --preset fuzz
cmake --build build/fuzz --target pytorch_fuzz -j 2
mkdir -p build/fuzz/corpus
cd build/fuzz
exec bin/pytorch_fuzz corpus ../../tests/checkpoint/corpus \
  ../../tests/checkpoint/data -max_total_time="$SECONDS_TO_RUN" -max_len=65536 \
  -rss_limit_mb=1024 -timeout=10 -print_final_stats=1
