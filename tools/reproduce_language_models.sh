#!/usr/bin/env bash
# Trains one language model, measures it and prints one row of docs/results.md:
#
#   bash tools/reproduce_language_models.sh CORPUS [MODEL]
#
# CORPUS: shakespeare (characters) or wikitext2 (words).
# MODEL: dynamicconv (default), lightconv, talk or self_attention.
# At most 12 minutes of training on 2 cores. Interrupt it when you like: the same
# command goes on where it stopped.
#
# Environment:
#   SEED=2          another seed (folder MODEL-seed2)
#   UPDATES=100     a shorter run (folder MODEL-updates100)
#   THREADS=2       threads for training (default: all cores)
#   SEQCONV=FILE    program (default build/release/bin/seqconv)
#   SEQCONV_DATA    data folder, see tools/prepare_language_models.sh
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/reproduce_common.sh"

[[ $# -ge 1 && $# -le 2 ]] || die "expected CORPUS and MODEL, but got: $*"
corpus=$1
model=${2:-dynamicconv}
case $corpus in
  shakespeare | wikitext2) ;;
  *) die "CORPUS must be shakespeare or wikitext2, but got '$corpus'" ;;
esac
case $model in
  dynamicconv | lightconv | talk | self_attention) ;;
  *)
    die "MODEL must be dynamicconv, lightconv, talk or self_attention, but got" \
      "'$model'"
    ;;
esac

check_numbers SEED UPDATES THREADS

bash tools/prepare_language_models.sh

run=runs/lm/$corpus/$model${SEED:+-seed$SEED}${UPDATES:+-updates$UPDATES}
train=("configs/lm_${corpus}_$model.toml")
[[ -z ${UPDATES:-} ]] || train+=(--set "training.max_updates=$UPDATES")
train_or_go_on "$run" "${train[@]}"

for part in valid test; do
  "$seqconv" perplexity --model "$run" --format json \
    <"runs/lm/data/$corpus.$part.txt" >"$run/$part.json"
done

# Generation, one thread: the row says how fast it is at three lengths.
: >"$run/generation.txt"
for length in 128 1024 8192; do
  "$seqconv" generate --model "$run" --length "$length" --threads 1 --stats \
    2>&1 >/dev/null | grep -o 'generated .*' >>"$run/generation.txt"
done

.venv/bin/python tools/summarise_language_model.py "$run"
