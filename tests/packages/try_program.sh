# Asks an installed `seqconv` for a little of everything: sh try_program.sh MODELS
# What it translates goes to standard output, for others to compare.
set -eu
models=$1
folder=$(mktemp -d)
printf 'dalan mira\ntolu\n' > "$folder/source"
seqconv --version | grep '^libtorch: not found: this program was built without' \
  > /dev/null
for model in translation_1 translation_2; do
  seqconv translate --model "$models/$model" < "$folder/source" | tee "$folder/output"
  [ "$(grep -c . "$folder/output")" -eq 2 ]
done
seqconv perplexity --model "$models/pieces_1" < "$folder/source" > "$folder/perplexity"
echo 'one two three four' > "$folder/four"
seqconv evaluate bleu --reference "$folder/four" < "$folder/four" | grep '^100.00$' > /dev/null
[ "$(echo "Well, it's done." | seqconv tokenize --language en)" = "Well , it 's done ." ]
seqconv info "$models/translation_1" | grep '^task: "translation"$' > /dev/null
if seqconv train nothing --output "$folder/model" 2> "$folder/message"; then exit 1; fi
# Configurations are found by name.
if seqconv import --checkpoint none --output "$folder/model" --preset nothing \
  2> "$folder/message"; then exit 1; fi
grep -q lightconv_iwslt_de_en "$folder/message"
rm -r "$folder"
