/* Translates lines of standard input as they come: each is answered by a thread of the library
 * while the next is read.
 *
 *   translate_c MODEL < TEXT
 */
#include <seqconv/seqconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "translate_c: %s: %s\n", what, seqconv_last_error());
  return 1;
}

/* Results come in any order: each has its place by the number in its event. */
static int write_all(seqconv_queue* queue, int64_t count) {
  seqconv_result** results = calloc((size_t)count + 1, sizeof(seqconv_result*));
  int failed = 0;
  int64_t i;
  if (results == NULL)
    return 1;
  for (i = 0; i < count; ++i) {
    seqconv_event event = SEQCONV_EVENT_INIT;
    if (seqconv_queue_take(queue, -1, &event) != SEQCONV_OK)
      failed = fail("no result");
    else
      results[(intptr_t)event.user] = event.result;
  }
  for (i = 0; i < count; ++i) {
    const seqconv_result* result = results[i];
    int ok = result != NULL && result->status == SEQCONV_OK;
    puts(ok ? result->outputs[0]->text.data : "");
    if (!ok) {
      failed = 1;
      fprintf(stderr, "%ld: %s\n", (long)i + 1, result == NULL ? "" : result->error.data);
    }
    seqconv_result_free(results[i]);
  }
  free(results);
  return failed;
}

static int translate(const seqconv_model* model, seqconv_queue* queue) {
  char line[4096];
  int64_t count = 0;
  while (fgets(line, sizeof(line), stdin) != NULL) {
    seqconv_translation_request request = SEQCONV_TRANSLATION_REQUEST_INIT;
    seqconv_call call = SEQCONV_CALL_INIT;
    line[strcspn(line, "\n")] = '\0';
    request.text = seqconv_text_of(line);
    call.queue = queue;
    call.user = (void*)(intptr_t)count;
    if (seqconv_translate_async(model, &request, &call) != SEQCONV_OK)
      return fail("a line is refused");
    ++count;
  }
  return write_all(queue, count);
}

int main(int argc, char** argv) {
  const char* folder = argc == 2 ? argv[1] : "";
  seqconv_model* model = NULL;
  seqconv_queue* queue = NULL;
  int failed;
  if (seqconv_open(&folder, 1, NULL, &model) != SEQCONV_OK)
    return fail("no model");
  failed = seqconv_queue_new(&queue) != SEQCONV_OK ? fail("no queue") : translate(model, queue);
  seqconv_close(model);
  seqconv_queue_free(queue);
  return failed;
}
