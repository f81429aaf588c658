#!/usr/bin/env bash
# Trains one summariser, summarises the test set and prints one row of
# docs/results.md:
#
#   bash tools/reproduce_summaries.sh CORPUS [MODEL]
#
# CORPUS: samsum (dialogues) or aeslc (subject lines of e-mails).
# MODEL: dynamicconv (default), lightconv, talk or self_attention; or lead, the
# beginning of each document, which needs no training.
# At most 25 minutes of training with one thread. Interrupt it when you like: the
# same command goes on where it stopped.
#
# Environment:
#   SEED=2          another seed (folder MODEL-seed2)
#   UPDATES=100     a shorter run (folder MODEL-updates100)
#   THREADS=2       threads for training and summaries (default: all cores)
#   SEQCONV=FILE    program (default build/release/bin/seqconv)
#   SEQCONV_DATA    folder with samsum/{train,validation,test}.jsonl.xz and
#                   aeslc/{train,dev,test}.jsonl.xz (packed or plain)
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/reproduce_common.sh"
source tools/read_packed.sh

[[ $# -ge 1 && $# -le 2 ]] || die "expected CORPUS and MODEL, but got: $*"
corpus=$1
model=${2:-dynamicconv}
data=runs/summaries/data
train=()
case $corpus in
  samsum) source_key=dialogue target_key=summary valid=validation sentences=3 ;;
  aeslc)
    source_key=body target_key=subject valid=dev sentences=1
    train=(
      --set "data.train=$data/aeslc.train.jsonl"
      --set "data.valid=$data/aeslc.valid.jsonl"
      --set data.source_key=body
      --set data.target_key=subject
      --set data.max_source_tokens=64
      --set data.max_target_tokens=40
      --set decoding.max_length_b=40
      --set batching.max_tokens=2048
      --set training.max_updates=6000
      --set schedule.period=5500
    )
    ;;
  *) die "CORPUS must be samsum or aeslc, but got '$corpus'" ;;
esac
case $model in
  dynamicconv | lightconv | talk | self_attention | lead) ;;
  *)
    die "MODEL must be dynamicconv, lightconv, talk, self_attention or lead," \
      "but got '$model'"
    ;;
esac
check_numbers SEED UPDATES THREADS

# unpack NAME TARGET: SEQCONV_DATA/CORPUS/NAME(.xz) becomes TARGET, whole or not
# at all.
unpack() {
  local target=$2
  [[ ! -s $target ]] || return 0
  [[ -n ${SEQCONV_DATA:-} ]] || die "name the data folder in SEQCONV_DATA"
  # Two rows may be made at a time.
  read_packed "$SEQCONV_DATA/$corpus/$1" >"$target.partial.$$"
  mv -f -- "$target.partial.$$" "$target"
}

mkdir -p "$data"
unpack train.jsonl "$data/$corpus.train.jsonl"
unpack "$valid.jsonl" "$data/$corpus.valid.jsonl"
unpack test.jsonl "$data/$corpus.test.jsonl"

run=runs/summaries/$corpus/$model${SEED:+-seed$SEED}${UPDATES:+-updates$UPDATES}
test=$data/$corpus.test.jsonl
threads=()
[[ -z ${THREADS:-} ]] || threads=(--threads "$THREADS")
if [[ $model == lead ]]; then
  mkdir -p "$run"
  .venv/bin/python tools/lead_sentences.py --key "$source_key" \
    --sentences "$sentences" <"$test" >"$run/test.partial"
else
  [[ -z ${UPDATES:-} ]] || train+=(--set "training.max_updates=$UPDATES")
  train_or_go_on "$run" "configs/summaries_$model.toml" "${train[@]}"
  "$seqconv" summarise --model "$run" "${threads[@]}" <"$test" >"$run/test.partial"
fi
mv -f -- "$run/test.partial" "$run/test.summaries.jsonl"

score() {
  "$seqconv" evaluate "$@" --hypotheses "$run/test.summaries.jsonl" \
    --hypothesis-key summary_text --reference "$test" --format json
}
score rouge --reference-key "$target_key" >"$run/rouge-1.5.5.json"
score rouge --style rouge_score --reference-key "$target_key" \
  >"$run/rouge_score.json"
# Subject lines are too short for BLEU, but have further references.
if [[ $corpus == aeslc ]]; then
  score rouge --combine best --reference-key annotations >"$run/annotations.json"
else
  score bleu --reference-key "$target_key" >"$run/bleu.json"
fi

.venv/bin/python tools/summarise_summaries.py "$run" "$source_key"
