#!/usr/bin/env bash
# Prepares Multi30k (task 1, German and English) for the experiments:
#
#   bash tools/prepare_multi30k.sh [DATA]
#
# DATA holds multi30k/train.de.xz and so on (packed or plain). Without
# it, the environment variable SEQCONV_DATA names the folder.
# Writes runs/multi30k/data/{train,valid,test}.{de,en} (Moses tokens, lower case)
# and {train,valid,test}.raw.{de,en} (as they came), with the program SEQCONV or
# build/release/bin/seqconv. Running it again does only
# what is missing or older than its source.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${1:-${SEQCONV_DATA:-}}
out=$root/runs/multi30k/data
seqconv=${SEQCONV:-$root/build/release/bin/seqconv}

say() { printf 'prepare_multi30k: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
[[ -n $data ]] || die "no data folder: give it as an argument or in SEQCONV_DATA"

partial=
cleanup() { [[ -z $partial ]] || rm -f -- "$partial"; }
trap cleanup EXIT

# write_file TARGET COMMAND...: the command's output becomes TARGET, whole or
# not at all.
write_file() {
  local target=$1
  shift
  partial=$(mktemp "$target.XXXXXX")
  "$@" >"$partial"
  chmod 644 "$partial"
  mv -f -- "$partial" "$target"
  partial=
}

# The file of one split and language, packed or not.
find_source() {
  local stem=$1 candidate
  for candidate in "$data/multi30k/$stem" "$data/$stem"; do
    if [[ -f $candidate.xz ]]; then
      printf '%s\n' "$candidate.xz"
      return
    elif [[ -f $candidate ]]; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "no $stem.xz in $data/multi30k; give the data folder as an argument" \
    "or in SEQCONV_DATA"
}

unpack() {
  case $1 in
    *.xz) xz -dc -- "$1" ;;
    *) cat -- "$1" ;;
  esac
}

tokenise() { "$seqconv" tokenize --language "$1" --lowercase <"$2"; }

need_program() {
  [[ -x $seqconv ]] || die "$seqconv is missing; build it first (bash" \
    "tools/setup.sh && cmake --preset release && cmake --build build/release)"
}

prepare_file() {
  local split=$1 stem=$2 language=$3 source raw tokens
  source=$(find_source "$stem.$language")
  raw=$out/$split.raw.$language
  tokens=$out/$split.$language
  if [[ ! -f $raw || $source -nt $raw ]]; then
    write_file "$raw" unpack "$source"
  fi
  if [[ ! -f $tokens || $raw -nt $tokens ]]; then
    need_program
    say "tokenising $split.$language"
    write_file "$tokens" tokenise "$language" "$raw"
  fi
}

lines_of() { wc -l <"$1" | tr -d ' '; }

check_split() {
  local split=$1 file lines
  lines=$(lines_of "$out/$split.raw.de")
  for file in "$out/$split".{raw.en,de,en}; do
    [[ $(lines_of "$file") == "$lines" ]] ||
      die "$file has $(lines_of "$file") lines, but $split.raw.de has $lines"
  done
  say "$split: $lines pairs"
}

mkdir -p "$out"
for split in train:train valid:val test:test_2016_flickr; do
  for language in de en; do
    prepare_file "${split%%:*}" "${split#*:}" "$language"
  done
  check_split "${split%%:*}"
done
say "ready in $out"
