/* Translates one text: translate_text_c MODEL TEXT */
#include <seqconv/seqconv.h>
#include <stdio.h>

int main(int argc, char** argv) {
  const char* folder = argc == 3 ? argv[1] : "";
  seqconv_model* model = NULL;
  char* translation = NULL;
  if (seqconv_open(&folder, 1, NULL, &model) != SEQCONV_OK ||
      seqconv_translate_text(model, argv[2], &translation) != SEQCONV_OK)
    fprintf(stderr, "translate_text_c: %s\n", seqconv_last_error());
  else
    puts(translation);
  seqconv_free(translation);
  seqconv_close(model);
  return translation == NULL;
}
