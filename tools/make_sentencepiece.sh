#!/usr/bin/env bash
# Makes a static library of SentencePiece, which Debian's packages lack, of Debian's own source
# of the version that is installed (some 2 minutes, 12 MB to download):
#
#   bash tools/make_sentencepiece.sh FOLDER
#
# FOLDER/lib/libsentencepiece.a is the answer; what is there already is left alone. Wants the
# package dpkg-dev. The source comes from the mirror that apt takes packages from, or from that
# which DEBIAN_MIRROR names.
set -euo pipefail
umask 022

MIRROR=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
  'Created-By: Packages' 'Component: main' | head -n 1)}
readonly MIRROR KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
[ $# -eq 1 ] || {
  echo "usage: tools/make_sentencepiece.sh FOLDER" >&2
  exit 2
}
version=$(dpkg-query -W -f '${source:Version}' libsentencepiece-dev)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
[ "$(cat "$folder/version" 2> /dev/null)" != "$version" ] || exit 0

# Lists and settings of its own: the machine's need not name sources.
unpack_source() {
  local code
  code=$(. /etc/os-release && echo "$VERSION_CODENAME")
  rm -rf "$folder/source"
  mkdir -p "$folder/source/lists/partial"
  cd "$folder/source"
  echo "deb-src [signed-by=$KEYS] $MIRROR $code main" > sources.list
  local options=(-q -o "Dir::Etc::SourceList=$PWD/sources.list" -o Dir::Etc::SourceParts=-
    -o "Dir::State::Lists=$PWD/lists" -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" source "sentencepiece=$version"
  cd sentencepiece-*/
  # Debian's change that leaves the static library out.
  patch -R -p1 < debian/patches/disable-static-library.patch
  # A seed for drawing pieces, which nothing here does, would be asked of a function that older
  # C libraries lack.
  sed -i 's/std::random_device{}()/std::mt19937::default_seed/' src/util.cc
  grep -q default_seed src/util.cc
}

build() {
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPM_ENABLE_SHARED=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_FLAGS="-w -ffunction-sections -fdata-sections -fvisibility=hidden -ffile-prefix-map=$PWD=."
  cmake --build build --target sentencepiece-static
  mkdir -p "$folder/lib"
  cp build/src/libsentencepiece.a "$folder/lib/"
}

unpack_source
build
cp debian/copyright "$folder/"
rm -rf "$folder/source"
echo "$version" > "$folder/version"
