#!/usr/bin/env bash
# Trains one model on Multi30k German -> English, translates the test set and
# prints one row of docs/results.md:
#
#   bash tools/reproduce_multi30k.sh [MODEL]
#
# MODEL: dynamicconv (default), lightconv, talk, self_attention, or tuned, a recipe of
# our own: tokenised lower case, BLEU with tokenizer none; sentencepiece: raw cased
# text, BLEU 13a.
# About half an hour on 2 cores. Interrupt it when you like: the same command
# goes on where it stopped.
#
# Environment:
#   SEED=2          another seed (folder MODEL-seed2)
#   EPOCHS=3        a shorter run (folder MODEL-epochs3)
#   THREADS=2       threads for training and translation (default: all cores)
#   DEVICE=cuda     where both run (folder MODEL-cuda; default: the CPU)
#   SEQCONV=FILE    program (default build/release/bin/seqconv)
#   SEQCONV_DATA    data folder, see tools/prepare_multi30k.sh
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/reproduce_common.sh"

[[ $# -le 1 ]] || die "expected at most one model, but got: $*"
model=${1:-dynamicconv}
case $model in
  dynamicconv | lightconv | talk | self_attention | tuned) raw='' tokenizer=none ;;
  sentencepiece) raw=.raw tokenizer=13a ;;
  *)
    die "MODEL must be dynamicconv, lightconv, talk, self_attention, tuned or" \
      "sentencepiece, but got '$model'"
    ;;
esac

check_numbers SEED EPOCHS THREADS

bash tools/prepare_multi30k.sh

data=runs/multi30k/data
run=runs/multi30k/$model${SEED:+-seed$SEED}${EPOCHS:+-epochs$EPOCHS}
run+=${DEVICE:+-${DEVICE/:/}}
train=(
  "configs/multi30k_$model.toml"
  --set "data.train_source=$data/train$raw.de"
  --set "data.train_target=$data/train$raw.en"
  --set "data.valid_source=$data/valid$raw.de"
  --set "data.valid_target=$data/valid$raw.en"
  --set "training.device=${DEVICE:-cpu}"
)
[[ -z ${EPOCHS:-} ]] || train+=(--set "training.max_epochs=$EPOCHS")
train_or_go_on "$run" "${train[@]}"

translate=(--model "$run")
[[ -z ${THREADS:-} ]] || translate+=(--threads "$THREADS")
[[ -z ${DEVICE:-} ]] || translate+=(--device "$DEVICE")
hypotheses=$run/test.hypotheses
"$seqconv" translate "${translate[@]}" <"$data/test$raw.de" >"$hypotheses.partial"
mv -f -- "$hypotheses.partial" "$hypotheses"

score=$("$seqconv" evaluate bleu --tokenize "$tokenizer" \
  --reference "$data/test$raw.en" <"$hypotheses")
say "test_2016_flickr, tokenizer $tokenizer: $score"
bleu=$(grep -oE '[0-9]+(\.[0-9]+)?' <<<"$score" | head -n 1)

.venv/bin/python tools/summarise_run.py "$run" --bleu "$bleu"
