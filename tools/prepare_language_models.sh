#!/usr/bin/env bash
# Prepares the texts of the language-model experiments:
#
#   bash tools/prepare_language_models.sh [DATA]
#
# DATA holds tinyshakespeare/input.txt.xz and wikitext-2/{train,valid,test}.txt.xz
# (packed or plain). Without it, the environment variable SEQCONV_DATA names it.
# Writes runs/lm/data/{shakespeare,wikitext2}.{train,valid,test}.txt. Shakespeare
# is cut at the line ends before 90 % and 95 % of its characters. Running it
# again does only what is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${1:-${SEQCONV_DATA:-}}
out=$root/runs/lm/data

say() { printf 'prepare_language_models: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
[[ -n $data ]] || die "no data folder: give it as an argument or in SEQCONV_DATA"

source "$root/tools/read_packed.sh"

mkdir -p "$out"
partial=$(mktemp -d "$out/partial.XXXXXX")
trap 'rm -rf -- "$partial"' EXIT

for part in train valid test; do
  target=$out/wikitext2.$part.txt
  [[ -s $target ]] && continue
  read_packed "$data/wikitext-2/$part.txt" >"$partial/text"
  mv -f -- "$partial/text" "$target"
  say "wrote $target"
done

if [[ ! -s $out/shakespeare.test.txt ]]; then
  read_packed "$data/tinyshakespeare/input.txt" >"$partial/whole"
  # The number of lines that end within a share of all characters.
  lines_within() {
    LC_ALL=C.UTF-8 awk -v share="$1" '
      { length_of[NR] = length($0) + 1; total += length($0) + 1 }
      END {
        for (line = 1; line <= NR && sum <= share * total; ++line)
          sum += length_of[line]
        print line - 2
      }' "$partial/whole"
  }
  first=$(lines_within 0.90)
  second=$(lines_within 0.95)
  head -n "$first" "$partial/whole" >"$partial/train"
  head -n "$second" "$partial/whole" | tail -n "+$((first + 1))" >"$partial/valid"
  tail -n "+$((second + 1))" "$partial/whole" >"$partial/test"
  for part in train valid test; do
    mv -f -- "$partial/$part" "$out/shakespeare.$part.txt"
    say "wrote $out/shakespeare.$part.txt"
  done
fi
