#ifndef SEQCONV_SEQCONV_H
#define SEQCONV_SEQCONV_H

/**
 * Trained models in plain C (C99): docs/c_interface.md. libseqconv_runtime.so, CPU,
 * no LibTorch.
 *
 * - Every function may be called from any thread; an object outlives the calls on it.
 * - No function throws, aborts, prints or handles a signal. A function of the
 *   caller's must not throw or jump out.
 * - Functions that can fail return a seqconv_status; seqconv_last_error() has the text.
 * - Structs that begin with `size` only grow, at their end: set it to sizeof, which
 *   the _INIT macros do together with the defaults. The other structs never change.
 * - Texts are UTF-8. Those of the library end in a NUL that is not counted.
 */

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQCONV_API __attribute__((visibility("default")))

/** The outcome of a call, and of a request in its result. */
typedef enum seqconv_status {
  SEQCONV_OK = 0,
  /* Requests and calls. */
  SEQCONV_INVALID = 1,       /**< text or options that make no sense to the model */
  SEQCONV_FAILED = 2,        /**< no finite probability, or no translation that options allow */
  SEQCONV_OUT_OF_MEMORY = 3, /**< for this request, or for what a call must hold */
  SEQCONV_CANCELLED = 4,     /**< before it was done */
  SEQCONV_TIMED_OUT = 5,     /**< its timeout passed before it was done */
  /* Results of streams alone. */
  SEQCONV_PART = 8, /**< some text of a request whose result is to come */
  /* Calls alone. */
  SEQCONV_MODEL_ERROR = 16,   /**< a model cannot be opened: no folder of one, damaged */
  SEQCONV_OPTION_ERROR = 17,  /**< arguments that make no sense, or of a newer header */
  SEQCONV_TASK_ERROR = 18,    /**< the model is of another task */
  SEQCONV_QUEUE_FULL = 19,    /**< queue_limit requests wait */
  SEQCONV_EMPTY = 20,         /**< no result came in time */
  SEQCONV_WRONG_PROCESS = 21, /**< made before a fork() that led to this process */
  SEQCONV_ERROR = 22          /**< anything else: no thread or descriptor to be had */
} seqconv_status;

/** What a model does. */
typedef enum seqconv_task {
  SEQCONV_TASK_ANY = 0,
  SEQCONV_TASK_TRANSLATION = 1, /**< and summaries: one text to another */
  SEQCONV_TASK_LANGUAGE_MODEL = 2
} seqconv_task;

/** The type that products are made in. */
typedef enum seqconv_compute {
  SEQCONV_COMPUTE_MODEL = 0, /**< int8 for models of int8, float32 for others */
  SEQCONV_COMPUTE_AUTO = 1,  /**< what is fastest here without another loss */
  SEQCONV_COMPUTE_FLOAT32 = 2,
  SEQCONV_COMPUTE_BFLOAT16 = 3,
  SEQCONV_COMPUTE_INT8 = 4
} seqconv_compute;

/** What a result tells of the source tokens that each token looked at. */
typedef enum seqconv_alignments {
  SEQCONV_ALIGNMENTS_NONE = 0,
  SEQCONV_ALIGNMENTS_PAIRS = 1, /**< tokens, their ranges, and which belong together */
  SEQCONV_ALIGNMENTS_SHARES = 2 /**< that, and the shares that pairs are made from */
} seqconv_alignments;

/** Bytes of a text. As an argument, size -1: up to a NUL; {NULL, 0}: not given. */
typedef struct seqconv_text {
  const char* data;
  int64_t size;
} seqconv_text;
#define SEQCONV_NO_TEXT \
  { NULL, 0 }
static inline seqconv_text seqconv_text_of(const char* text) {
  seqconv_text result;
  result.data = text;
  result.size = text == NULL ? 0 : -1;
  return result;
}

/** Bytes of a text, from `begin` to before `end`. */
typedef struct seqconv_byte_range {
  int64_t begin;
  int64_t end;
} seqconv_byte_range;

/** Numbers, from 0, of a source token and of a token that looked at it. */
typedef struct seqconv_aligned_tokens {
  int64_t source;
  int64_t target;
} seqconv_aligned_tokens;

/** An opened model, or several that vote. */
typedef struct seqconv_model seqconv_model;
/** A token that ends requests. */
typedef struct seqconv_cancel_token seqconv_cancel_token;
/** Results of asynchronous requests, with a descriptor to wait on. */
typedef struct seqconv_queue seqconv_queue;

/* ---- The library ---------------------------------------------------------- */

/** The version of the library, such as "0.1.0". */
SEQCONV_API const char* seqconv_version(void);
/** Why the latest call of this thread that failed did so; "" before the first. Valid until
 * another call of this thread fails. */
SEQCONV_API const char* seqconv_last_error(void);
/** "out of memory" and the like; "unknown status" for another number. */
SEQCONV_API const char* seqconv_status_name(int32_t status);

/* ---- Models --------------------------------------------------------------- */

/** How a model runs. */
typedef struct seqconv_runtime_options {
  size_t size;
  int32_t task;              /**< seqconv_task: a model of another one is not opened */
  int32_t compute;           /**< seqconv_compute */
  int32_t follow_links;      /**< files of a folder may be links out of it; 0 or 1 */
  int32_t reserved;          /**< 0 */
  int64_t threads;           /**< batches that a call works on at a time, at most 1024; 0: cores */
  int64_t batch_tokens;      /**< tokens of a batch, padding counted */
  int64_t logits_bytes;      /**< memory of a step's logits; results do not depend on it */
  int64_t max_source_tokens; /**< longer texts are cut, with a note; 0: as the model says */
  int64_t queue_limit;       /**< asynchronous requests that may wait; 0: any number */
  const char* shortlist;     /**< a file of `seqconv shortlist`; NULL: all words */
  int64_t max_wait_ms;       /**< that an asynchronous request waits for others, at most 60,000 */
  const char* terminology;   /**< a file of lines SOURCE<tab>TARGET for texts; NULL: none */
} seqconv_runtime_options;
#define SEQCONV_RUNTIME_OPTIONS_INIT                                                         \
  {                                                                                          \
    sizeof(seqconv_runtime_options), SEQCONV_TASK_ANY, SEQCONV_COMPUTE_MODEL, 0, 0, 0, 4096, \
        INT64_C(32) << 20, 0, 0, NULL, 0, NULL                                               \
  }

/** Opens a model folder, or `count` folders of translation models that vote. options: NULL for
 * the defaults. The files stay mapped: replace them by renaming. */
SEQCONV_API seqconv_status seqconv_open(
    const char* const* folders,
    int64_t count,
    const seqconv_runtime_options* options,
    seqconv_model** model);

/** Cancels asynchronous requests, tells their results, and frees the model. NULL: nothing. Not
 * from a function that the model calls. */
SEQCONV_API void seqconv_close(seqconv_model* model);

/** How translations are searched for. The constants below say: as the model's own. */
typedef struct seqconv_search_options {
  size_t size;
  int64_t beam;            /**< hypotheses of a sentence; 1: greedy */
  int64_t n_best;          /**< translations given, at most the beam */
  int64_t max_length_b;    /**< most tokens: max_length_a * source + max_length_b */
  int64_t min_length;      /**< fewest tokens */
  int64_t no_repeat_ngram; /**< no n-gram of this size twice; 0: off */
  double max_length_a;
  double length_penalty;           /**< scores are divided by length^penalty */
  double unknown_penalty;          /**< subtracted from the log-probability of <unk> */
  int32_t ban_unknown;             /**< 1: <unk> comes in prefixes alone */
  int32_t stepwise_length_penalty; /**< 1: finished hypotheses stay in the beam */
} seqconv_search_options;
#define SEQCONV_OWN_INTEGER INT64_MIN
#define SEQCONV_OWN_NUMBER (-DBL_MAX)
#define SEQCONV_OWN_FLAG (-1)
#define SEQCONV_SEARCH_OPTIONS_INIT                                                                \
  {                                                                                                \
    sizeof(seqconv_search_options), SEQCONV_OWN_INTEGER, SEQCONV_OWN_INTEGER, SEQCONV_OWN_INTEGER, \
        SEQCONV_OWN_INTEGER, SEQCONV_OWN_INTEGER, SEQCONV_OWN_NUMBER, SEQCONV_OWN_NUMBER,          \
        SEQCONV_OWN_NUMBER, SEQCONV_OWN_FLAG, SEQCONV_OWN_FLAG                                     \
  }

/** An opened model. */
typedef struct seqconv_model_info {
  size_t size;
  int32_t task;              /**< seqconv_task */
  int32_t reserved;          /**< 0 */
  int64_t models;            /**< that vote */
  int64_t threads;           /**< as opened */
  int64_t parameters;        /**< numbers of the models' files */
  int64_t file_bytes;        /**< of these files, which are mapped */
  int64_t weight_bytes;      /**< of weights in memory beside them */
  int64_t source_vocabulary; /**< symbols; 0 for a language model */
  int64_t target_vocabulary;
  int64_t max_source_tokens; /**< of a text, its end counted, before it is cut; 0: no limit */
  int64_t max_target_tokens; /**< by learned positions, the end counted; 0: no limit */
  const char* compute;       /**< "float32", "bfloat16" or "int8"; several with ", " between */
  const seqconv_search_options* search; /**< the defaults; NULL for a language model */
} seqconv_model_info;

/** Valid as long as the model. */
SEQCONV_API const seqconv_model_info* seqconv_info(const seqconv_model* model);

/* ---- Results -------------------------------------------------------------- */

/** A translation, a text that goes on, or a score. What is not wanted is NULL. */
typedef struct seqconv_output {
  size_t size;
  seqconv_text text;
  int64_t token_count;
  const seqconv_text* tokens;             /**< [token_count], </s> the last of a translation */
  const float* token_scores;              /**< [token_count], natural log-probabilities */
  double score;                           /**< log_probability / length^penalty */
  double log_probability;                 /**< natural; NaN where there is none */
  const seqconv_byte_range* token_ranges; /**< [token_count], in `text`; of </s> its end */
  int64_t pair_count;
  const seqconv_aligned_tokens* pairs; /**< [pair_count], by source, then target */
  const float* source_shares; /**< [token_count, source_token_count]; the sum of a row is 1 */
} seqconv_output;

/** The result of a request, or a part of it. */
typedef struct seqconv_result {
  size_t size;
  int32_t status;     /**< seqconv_status */
  int32_t reserved;   /**< 0 */
  seqconv_text error; /**< why it is not SEQCONV_OK */
  int64_t note_count;
  const seqconv_text* notes; /**< what was cut, replaced or put right */
  int64_t output_count;
  const seqconv_output* const* outputs; /**< best first; none where it is not ok */
  int64_t source_token_count;
  const seqconv_text* source_tokens; /**< with alignments: of the text, </s> the last */
  const seqconv_byte_range* source_ranges;
  /** Of a part: bytes of the text so far that stay; outputs[0]->text follows them. */
  int64_t kept_bytes;
} seqconv_result;

/** NULL: nothing. */
SEQCONV_API void seqconv_result_free(seqconv_result* result);
/** Frees what a function of this header gave as `char*`. */
SEQCONV_API void seqconv_free(char* text);

/* ---- Requests ------------------------------------------------------------- */

/** Options of drawing tokens: bans, then temperature, top_k and top_p. */
typedef struct seqconv_sampling_options {
  size_t size;
  double temperature;  /**< 0: the most probable */
  int64_t top_k;       /**< only so many of the most probable; 0: all */
  double top_p;        /**< only the most probable that reach this sum */
  int32_t ban_unknown; /**< 0 or 1 */
  int32_t has_seed;    /**< 0: the seed is 1 and the request's number in its call */
  uint64_t seed;
} seqconv_sampling_options;
#define SEQCONV_SAMPLING_OPTIONS_INIT \
  { sizeof(seqconv_sampling_options), 1.0, 0, 1.0, 0, 0, 0 }

/** A term of the source language, and its translation as it is to be spelled. */
typedef struct seqconv_term {
  seqconv_text source;
  seqconv_text target;
} seqconv_term;

/** A text to translate or summarise, or its tokens as the model's vocabulary spells them; both
 * are SEQCONV_INVALID. */
typedef struct seqconv_translation_request {
  size_t size;
  seqconv_text text;
  const seqconv_text* tokens; /**< instead of `text`, which is empty then; NULL: not given */
  int64_t token_count;
  seqconv_text prefix;               /**< how the translation must begin */
  const seqconv_text* prefix_tokens; /**< instead of `prefix`, which is empty then */
  int64_t prefix_token_count;
  const seqconv_search_options* search;     /**< NULL: as the model's own */
  const seqconv_sampling_options* sampling; /**< NULL: searched for; else drawn, n_best times */
  int32_t alignments;                       /**< seqconv_alignments */
  int32_t stream;     /**< 1: tells parts, which all hypotheses have in common */
  int64_t timeout_ms; /**< from the call on; 0: none */
  /** [term_count], beside the terminology and before it: translations of a text that holds a source
   * hold its target. With tokens or sampling they are SEQCONV_INVALID. */
  const seqconv_term* terms;
  int64_t term_count;
} seqconv_translation_request;
#define SEQCONV_TRANSLATION_REQUEST_INIT                                                           \
  {                                                                                                \
    sizeof(seqconv_translation_request), SEQCONV_NO_TEXT, NULL, 0, SEQCONV_NO_TEXT, NULL, 0, NULL, \
        NULL, SEQCONV_ALIGNMENTS_NONE, 0, 0, NULL, 0                                               \
  }

/** A text and its translation, to be scored. */
typedef struct seqconv_score_request {
  size_t size;
  seqconv_text source;
  seqconv_text target;
  int64_t timeout_ms;
} seqconv_score_request;
#define SEQCONV_SCORE_REQUEST_INIT \
  { sizeof(seqconv_score_request), SEQCONV_NO_TEXT, SEQCONV_NO_TEXT, 0 }

/** A text that a language model goes on with. */
typedef struct seqconv_generation_request {
  size_t size;
  seqconv_text prompt;
  const seqconv_text* prompt_tokens; /**< instead of `prompt`, which is empty then */
  int64_t prompt_token_count;
  int64_t length;                           /**< tokens to generate, at least 1 */
  const seqconv_sampling_options* sampling; /**< NULL: SEQCONV_SAMPLING_OPTIONS_INIT */
  int32_t stream;                           /**< 1: tells parts, whole characters */
  int32_t reserved;                         /**< 0 */
  int64_t timeout_ms;
} seqconv_generation_request;
#define SEQCONV_GENERATION_REQUEST_INIT \
  { sizeof(seqconv_generation_request), SEQCONV_NO_TEXT, NULL, 0, 200, NULL, 0, 0, 0 }

/** Hears a result or a part, which is its own to free; `request`: its number in the call.
 * Another answer than 0 ends the request, if it is a part: its text so far is a result that is
 * ok; else the call, which tells no more. One call of a request's call at a time, by any thread. */
typedef int32_t (*seqconv_heard)(void* user, int64_t request, seqconv_result* result);

/** Where results go. */
typedef struct seqconv_call {
  size_t size;
  seqconv_cancel_token* cancel; /**< NULL: never */
  seqconv_heard heard;          /**< NULL: none */
  seqconv_queue* queue;         /**< of asynchronous requests without `heard` */
  void* user;                   /**< for `heard`, and in the queue's events */
} seqconv_call;
#define SEQCONV_CALL_INIT \
  { sizeof(seqconv_call), NULL, NULL, NULL, NULL }

/* ---- Calls that wait ------------------------------------------------------ */

/** The best translation of one text; *translation: for seqconv_free. A request's status
 * is the call's. */
SEQCONV_API seqconv_status
seqconv_translate_text(const seqconv_model* model, const char* text, char** translation);

/** Translates `count` requests, each of the first one's size. results: [count], each for
 * seqconv_result_free; NULL where call->heard hears them. Requests that fail leave the others:
 * the call itself is SEQCONV_OK. call: may be NULL. */
SEQCONV_API seqconv_status seqconv_translate(
    const seqconv_model* model,
    const seqconv_translation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results);

/** Summarises documents, whose lines are taken together; sentences of summaries are lines.
 * Alignments are a SEQCONV_OPTION_ERROR. */
SEQCONV_API seqconv_status seqconv_summarise(
    const seqconv_model* model,
    const seqconv_translation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results);

/** Log-probabilities of translations given their sources, </s> included. */
SEQCONV_API seqconv_status seqconv_score(
    const seqconv_model* model,
    const seqconv_score_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results);

/** Goes on with texts, one after another. A result that is not ok has its text so far. */
SEQCONV_API seqconv_status seqconv_generate(
    const seqconv_model* model,
    const seqconv_generation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results);

/* ---- Calls that return at once -------------------------------------------- */

/** Requests that come close together share batches. call->heard hears the result, or
 * call->queue has it; every accepted request has exactly one. The request is
 * copied, with all it points to. SEQCONV_QUEUE_FULL: nothing was done. */
SEQCONV_API seqconv_status seqconv_translate_async(
    const seqconv_model* model,
    const seqconv_translation_request* request,
    const seqconv_call* call);
SEQCONV_API seqconv_status seqconv_summarise_async(
    const seqconv_model* model,
    const seqconv_translation_request* request,
    const seqconv_call* call);
SEQCONV_API seqconv_status seqconv_score_async(
    const seqconv_model* model, const seqconv_score_request* request, const seqconv_call* call);
SEQCONV_API seqconv_status seqconv_generate_async(
    const seqconv_model* model,
    const seqconv_generation_request* request,
    const seqconv_call* call);

/** A token that is not cancelled. */
SEQCONV_API seqconv_status seqconv_cancel_token_new(seqconv_cancel_token** token);
/** Asks the requests of calls with this token to stop. */
SEQCONV_API void seqconv_cancel(seqconv_cancel_token* token);
/** 1 once seqconv_cancel was called, else 0. */
SEQCONV_API int32_t seqconv_is_cancelled(const seqconv_cancel_token* token);
/** Requests under way keep what they need. NULL: nothing. */
SEQCONV_API void seqconv_cancel_token_free(seqconv_cancel_token* token);

/** What a queue has of a request. */
typedef struct seqconv_event {
  size_t size;
  void* user;             /**< of its call */
  seqconv_result* result; /**< for seqconv_result_free */
} seqconv_event;
#define SEQCONV_EVENT_INIT \
  { sizeof(seqconv_event), NULL, NULL }

/** A queue that is empty. */
SEQCONV_API seqconv_status seqconv_queue_new(seqconv_queue** queue);
/** Results that are in it, and those to come, are dropped. NULL: nothing. */
SEQCONV_API void seqconv_queue_free(seqconv_queue* queue);
/** A descriptor for poll() and its like, readable while the queue is not empty; its own, neither
 * to be read nor closed. */
SEQCONV_API int32_t seqconv_queue_descriptor(const seqconv_queue* queue);
/** Takes the oldest event, waiting up to so many milliseconds, 0: not at all, -1: for ever.
 * SEQCONV_EMPTY where none came. */
SEQCONV_API seqconv_status
seqconv_queue_take(seqconv_queue* queue, int64_t timeout_ms, seqconv_event* event);

/* ---- Tokens and metrics --------------------------------------------------- */

/** Sides of a model; a language model has the target alone. */
#define SEQCONV_SOURCE 0
#define SEQCONV_TARGET 1

/** The tokens of a text as the model reads it, without a last </s>, in outputs[0]->tokens; </s>
 * stands between lines for a language model. */
SEQCONV_API seqconv_status seqconv_tokenize(
    const seqconv_model* model, int32_t side, seqconv_text text, seqconv_result** result);
/** The text of tokens, in outputs[0]->text: the other way. */
SEQCONV_API seqconv_status seqconv_detokenize(
    const seqconv_model* model,
    int32_t side,
    const seqconv_text* tokens,
    int64_t count,
    seqconv_result** result);

/** Scores of a corpus, for seqconv_scores_free. */
typedef struct seqconv_scores {
  size_t size;
  int64_t count;
  const seqconv_text* names; /**< [count]: "BLEU"; "ROUGE-1", "ROUGE-2" and "ROUGE-L" */
  const double* values;      /**< [count], in percent */
  seqconv_text signature;    /**< how the scores came about */
  seqconv_text report;       /**< names, signature and scores in one line */
} seqconv_scores;

/** Scores hypotheses. metric: "bleu", "chrf", "ter", "rouge" or "exact". references: `each` of
 * the first hypothesis, then as many of the second, and so on: [count, each]. options: NULL or a
 * JSON object of the metric's keys (docs/reference/configuration.md, metrics), such as
 * {"tokenizer": "char"}. */
SEQCONV_API seqconv_status seqconv_evaluate(
    const char* metric,
    const seqconv_text* hypotheses,
    const seqconv_text* references,
    int64_t count,
    int64_t each,
    const char* options,
    seqconv_scores** scores);
/** NULL: nothing. */
SEQCONV_API void seqconv_scores_free(seqconv_scores* scores);

#ifdef __cplusplus
}
#endif

#endif
