#!/usr/bin/env bash
# Writes docs/reference/ from the program's own tables of verbs, options and
# keys. With --check writes nothing and fails where a page is not what the
# program says.
#
#   bash tools/make_reference.sh [--check]
#
# SEQCONV_BINARY_DIR names the build folder, build/release by default.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${SEQCONV_BINARY_DIR:-build/release}/bin/seqconv
stale=0
mkdir -p docs/reference
for page in command-line configuration; do
  file=docs/reference/${page//-/_}.md
  text=$("$program" reference "$page")
  if [ "${1:-}" != --check ]; then
    printf '%s\n' "$text" >"$file"
  elif ! diff -u "$file" - <<<"$text"; then
    echo "$file is stale: run bash tools/make_reference.sh" >&2
    stale=1
  fi
done
exit "$stale"
