#!/usr/bin/env bash
# From nothing to a translation: sets the machine up, builds the program,
# generates number words, trains a DynamicConv model on 20,000 pairs (English ->
# German) and translates 1,000 numbers that it has never seen.
#
#   bash tools/demo.sh
#
# Everything it makes lies in build/release and demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

bash tools/setup.sh

say "Building the program (several minutes the first time)"
cmake --preset release
cmake --build --preset release --target seqconv
seqconv=build/release/bin/seqconv

say "Writing number words to demo/data"
python3 tools/number_words.py --output demo/data --train 20000 --test 1000

say "Training (under three minutes on two cores)"
rm -rf demo/model
started=$SECONDS
"$seqconv" train configs/demo_numbers.toml --output demo/model
echo "trained in $((SECONDS - started)) s"

say "Translating 1,000 numbers of the test set"
"$seqconv" translate --model demo/model --stats \
  <demo/data/test.en >demo/test.hypotheses

# Source, translation and, where it differs, what was wanted.
paste demo/data/test.en demo/test.hypotheses demo/data/test.de |
  awk -F '\t' '
    NR % 100 == 1 { print "  " $1 "\n    -> " $2 }
    NR % 100 == 1 && $2 != $3 { print "    wanted: " $3 }
    $2 == $3 { right++ }
    END { printf "\nexact match: %.1f %%\n", 100 * right / NR }'
printf 'BLEU: '
"$seqconv" evaluate bleu --tokenize char --reference demo/data/test.de \
  <demo/test.hypotheses | head -n 1

say "Try it yourself"
echo "  echo 'four hundred and six' | $seqconv translate --model demo/model"
