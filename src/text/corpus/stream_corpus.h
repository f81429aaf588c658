#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "text/corpus/corpus_side.h"
#include "text/corpus/samples.h"

namespace seqconv::internal {

/// Says how a language model's text becomes samples.
enum class SampleKind {
  kBlocks,          ///< all lines of all files are one stream, cut into blocks
  kDocumentBlocks,  ///< likewise, but no block goes beyond a document;
                    ///< documents end at blank lines and at the end of a file
  kLines,           ///< every line that is not blank is a sample of its own
};
template <>
struct EnumNames<SampleKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, SampleKind>>(
      {{"blocks", SampleKind::kBlocks},
       {"document_blocks", SampleKind::kDocumentBlocks},
       {"lines", SampleKind::kLines}});
};

/// Options of a language model's corpus.
struct StreamOptions {
  SampleKind samples = SampleKind::kBlocks;
  int64_t block_tokens = 512;  ///< most tokens that a block predicts

  template <class Visitor>
  void visit(Visitor& v) {
    v("samples", samples, "Samples of a language model: blocks, document_blocks or lines");
    v("block_tokens",
      block_tokens,
      R"(Tokens that a sample of blocks or document_blocks predicts, at least 1)");
  }

  /// UsageError for values out of range; `path` prefixes the keys in messages.
  void validate(const std::string& path) const;
};

/// Tells what happened while a corpus was read; printed by `seqconv train`.
struct StreamReport {
  int64_t lines = 0;      ///< lines read
  int64_t blank = 0;      ///< lines of white space or without symbols
  int64_t too_long = 0;   ///< lines over the limit, left out
  int64_t sequences = 0;  ///< of the token store
  int64_t tokens = 0;     ///< predicted ones: ids, and </s> of each line kept
  int64_t unknown = 0;    ///< of them <unk>

  template <class Visitor>
  void visit(Visitor& v) {
    v("lines", lines, "Lines read");
    v("blank", blank, "Blank lines");
    v("too_long", too_long, "Lines over the limit, left out");
    v("sequences", sequences, "Sequences of the token store");
    v("tokens", tokens, "Tokens to predict");
    v("unknown", unknown, "Of them <unk>");
  }
  std::string summary() const;
};

/// Reads files line by line, encodes text and writes one token store at
/// `path`, in bounded memory. Every sequence begins with </s>, which is input
/// alone and not counted in `tokens`; then come the ids, a </s> behind each
/// line. Blank is a line of white space alone, or one without ids; of
/// binarised sentences those without ids.
///
///   blocks: one sequence for everything; a blank line has its ids, mostly
///     none, and </s> as others do. Text counts as in the literature on
///     WikiText-2, where each line ends in one more token.
///   document_blocks: a sequence a document; blank lines only separate.
///   lines: a sequence a line; blank lines are left out, and so are lines of
///     more than `max_length` tokens (</s> counted).
///
/// Errors: invalid UTF-8, wrong binarised data and what the callbacks throw
/// (with file and line; an interruption passes as it is), nothing left ("no
/// text to learn from in ...", also where all lines are blank). After an error
/// no part of a new corpus is there.
StreamReport write_stream_corpus(
    const CorpusSide& side,
    const StreamOptions& options,
    int64_t max_length,
    const std::filesystem::path& path);

/// The samples of a store that write_stream_corpus wrote with the same kind of
/// samples: windows of at most `block_tokens` predicted tokens, the last one of
/// a sequence perhaps shorter; for lines whole sequences. The first input of a
/// window is the token before it. The store stays on the disk (memory-mapped);
/// memory: 8 bytes a document for document_blocks, else none.
///
/// Batches have no source (S = 0, `source` and `source_lengths` empty). Error
/// when the store does not fit the options, and, as a batch is made, for an id
/// outside [0, vocabulary): "wrong corpus for the vocabulary".
std::shared_ptr<const SampleSource> open_stream_corpus(
    const std::filesystem::path& path, const StreamOptions& options, int64_t vocabulary);

}  // namespace seqconv::internal
