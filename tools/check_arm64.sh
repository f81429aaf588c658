#!/usr/bin/env bash
# Compiles the kernels and their tests for arm64 and runs them under emulation: some
# 14 minutes of processor time, half of them the tests with SVE, which use one core.
#
#   bash tools/check_arm64.sh [GTEST ARGUMENTS]
#
# Needs the Debian packages g++-aarch64-linux-gnu, qemu-user, libhwy-dev,
# nlohmann-json3-dev and googletest: headers of the last three alone, and
# GoogleTest's sources, so that no library for arm64 is needed. Twice: for every arm64
# processor, and, as -march=native does on new ones, with SVE for the compiler's own
# vectors (Highway's are NEON's, see kernels/common/each_target.h). Objects go to
# build/arm64.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly COMPILER=aarch64-linux-gnu-g++ EMULATOR=qemu-aarch64
readonly GOOGLETEST=/usr/src/googletest
# As CMakeLists.txt in src/base, src/kernels and tests/kernels have them.
readonly BASE=(
  atomic_file checksum crc32 elements error files files_under_way json_members library_path
  log mapping_faults one_line rooted_path safetensors utf8)
readonly LOOPS="-ffp-contract=fast -fno-math-errno -fno-trapping-math -fopenmp-simd"

need() {
  [ -e "$1" ] || command -v "$1" > /dev/null && return
  echo "check_arm64.sh: needs $1, but it is not there:" >&2
  echo "  apt-get install -y --no-install-recommends $2" >&2
  exit 1
}
need "$COMPILER" g++-aarch64-linux-gnu
need "$EMULATOR" qemu-user
need "$GOOGLETEST/googletest/src/gtest-all.cc" googletest

# One line a source: its object, its own flags, the source.
sources() {
  local file
  for file in "${BASE[@]}"; do
    echo "base_$file.o -O1 src/base/$file.cpp"
  done
  find src/kernels -name '*.cpp' | while read -r file; do
    case "$file" in
      */decoding_ops.cpp | */elementwise_ops.cpp) echo "$(object "$file") -O3 $LOOPS $file" ;;
      *) echo "$(object "$file") -O3 $file" ;;
    esac
  done
  for file in tests/kernels/*_test.cpp; do
    case "$file" in
      */cuda_*) ;;
      */vector_math_test.cpp) echo "$(object "$file") -O3 $LOOPS $file" ;;
      *) echo "$(object "$file") -O1 $file" ;;
    esac
  done
  echo "gtest.o -O1 $GOOGLETEST/googletest/src/gtest-all.cc"
  echo "gmock.o -O1 $GOOGLETEST/googlemock/src/gmock-all.cc"
  echo "main.o -O1 $GOOGLETEST/googletest/src/gtest_main.cc"
}
object() { echo "$(echo "${1%.cpp}" | tr / _).o"; }

# run FOLDER CPU COMPILER'S FLAGS -- GTEST ARGUMENTS
run() {
  folder=build/arm64/$1
  local cpu=$2 flags=()
  shift 2
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  printf '== %s on %s\n' "${flags[*]:-every arm64}" "$cpu"
  rm -rf "$folder"
  mkdir -p "$folder"
  # GCC takes a test's operators new and delete, inlined by halves, for a mismatch.
  sources | xargs -P "$(nproc)" -L 1 bash -c '
    to=$0/$1; shift
    exec '"$COMPILER"' -std=c++20 -Wall -Wextra -Wno-unused-parameter \
      -Wno-missing-field-initializers -Wno-mismatched-new-delete \
      '"${flags[*]}"' -Iinclude -Isrc -Itests \
      -isystem '"$GOOGLETEST"'/googletest/include -isystem '"$GOOGLETEST"'/googlemock/include \
      -isystem '"$GOOGLETEST"'/googletest -isystem '"$GOOGLETEST"'/googlemock \
      -DSEQCONV_SOURCE_DIR="\"$PWD\"" -DSEQCONV_BINARY_DIR="\"$PWD/$0\"" -c -o "$to" "$@"
    ' "$folder"
  "$COMPILER" "$folder"/*.o -o "$folder/kernels_test" -lpthread
  "$EMULATOR" -cpu "$cpu" -L /usr/aarch64-linux-gnu "$folder/kernels_test" --gtest_brief=1 "$@"
}
run neon cortex-a57 -- "$@"
run sve max,sve256=on -march=armv8.2-a+sve -- "$@"
