#!/usr/bin/env bash
# Makes the packages of the last commit twice, and installs each where nothing else is:
#
#   bash tools/check_packages.sh [FLAGS OF tools/package.sh]
#
# Both must be the same bytes, though of different folders; Debian's packages go through lintian;
# a fresh Debian 12, which mmdebstrap makes, installs the wheel and then the packages, translates
# with each, compiles a C program, and has nothing left of them when they are removed. Some 25
# minutes on 2 cores, and 200 MB to download. `tools/setup.sh --packages` brings what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }

readonly CHECK=$PWD/build/check_packages
python=${PYTHON:-.venv/bin/python}
first=$CHECK/dist
models=$PWD/tests/model/folders

make_twice() {
  rm -rf "$CHECK"
  bash tools/package.sh "$@" --out "$first"
  # Objects that ccache keeps would hide a difference.
  CCACHE_DISABLE=1 bash tools/package.sh "$@" --out "$CHECK/again" --work "$CHECK/elsewhere"
  say "Checksums, twice the same"
  (cd "$first" && sha256sum --check SHA256SUMS)
  diff "$first/SHA256SUMS" "$CHECK/again/SHA256SUMS"
}

check_forms() {
  say "Forms of the packages"
  lintian --allow-root --fail-on error,warning "$first"/*.deb
  "$python" -m spdx_tools.spdx.clitools.pyspdxtools -i "$first"/*.spdx.json
  "$python" -m auditwheel show "$first"/seqconv-[0-9]*.whl | tee "$CHECK/show"
  grep -q 'manylinux_2_34_x86_64' "$CHECK/show"
  unzip -p "$first"/seqconv-[0-9]*.whl '*/libseqconv_runtime.so.1' | gzip -9 > "$CHECK/library.gz"
  at_most 6000000 "$first"/seqconv-[0-9]*.whl
  at_most 4000000 "$CHECK/library.gz"
}

# at_most BYTES FILE
at_most() {
  local size
  size=$(stat -c %s "$2")
  [ "$size" -le "$1" ] && return
  echo "check_packages.sh: $2 must have $1 bytes at most, but has $size" >&2
  return 1
}

try_in_venv() {
  say "The wheel in an environment of its own"
  "$python" -m venv "$CHECK/venv"
  local run=(env -i "PATH=$CHECK/venv/bin:/usr/bin:/bin")
  "${run[@]}" pip install --quiet --no-index "$first"/seqconv-[0-9]*.whl
  "${run[@]}" sh tests/packages/try_program.sh "$models" > "$CHECK/of_wheel"
  "${run[@]}" python tests/packages/translate.py "$models" | diff "$CHECK/of_wheel" -
  "${run[@]}" python -m seqconv --version
}

try_in_debian() {
  say "All of them in a fresh Debian"
  local try=$CHECK/try
  mkdir "$try"
  cp "$first"/*.deb "$first"/seqconv-[0-9]*.whl "$try"
  cp -r tests/packages "$try/packages"
  cp -r "$models" "$try/models"
  mmdebstrap --variant=apt --include=python3-venv --format=null \
    --customize-hook='mkdir "$1/try"' --customize-hook="sync-in $try /try" \
    --customize-hook='chroot "$1" apt-get update -q' \
    --customize-hook='chroot "$1" sh /try/packages/in_debian.sh' bookworm - > "$CHECK/debian.log" 2>&1 || {
    tail -n 40 "$CHECK/debian.log" >&2
    return 1
  }
}

make_twice "$@"
check_forms
try_in_venv
try_in_debian
say "Done"
