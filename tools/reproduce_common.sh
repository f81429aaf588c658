# What the reproduce_*.sh scripts share; they source it with `set -euo pipefail`.
# SEED, THREADS and SEQCONV mean the same in all of them.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() {
  say "$*"
  exit 2
}

# check_numbers NAME...: these variables are whole numbers or empty.
check_numbers() {
  local name
  for name; do
    [[ -z ${!name:-} || ${!name} =~ ^[0-9]+$ ]] ||
      die "$name must be a whole number, but got '${!name}'"
  done
}

seqconv=${SEQCONV:-$root/build/release/bin/seqconv}
[[ -x $seqconv ]] ||
  die "$seqconv is missing; build it first (bash tools/setup.sh, then" \
    "cmake --preset release && cmake --build build/release)"

# train_or_go_on RUN FLAG...: trains into the folder RUN, or goes on with it.
train_or_go_on() {
  local run=$1
  shift
  local train=("$@" --output "$run")
  [[ -z ${SEED:-} ]] || train+=(--set "training.seed=$SEED")
  [[ -z ${THREADS:-} ]] || train+=(--set "training.threads=$THREADS")
  if [[ -e $run/training/state.safetensors ]]; then
    say "going on with $run"
    train+=(--resume)
  fi
  "$seqconv" train "${train[@]}"
}
