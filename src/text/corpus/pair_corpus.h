#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "text/corpus/corpus_side.h"
#include "text/corpus/token_store.h"

namespace seqconv::internal {

/// Tells what happened while a corpus was read; printed by `seqconv train`.
struct CorpusReport {
  int64_t lines = 0;       ///< pairs of lines read
  int64_t pairs = 0;       ///< pairs kept
  int64_t empty = 0;       ///< pairs with an empty side, left out
  int64_t too_long = 0;    ///< pairs over the limit on one side, left out
  int64_t source_cut = 0;  ///< pairs kept with the source cut
  int64_t target_cut = 0;
  int64_t source_tokens = 0;  ///< of the pairs kept, </s> counted
  int64_t target_tokens = 0;
  int64_t source_unknown = 0;  ///< of them <unk>
  int64_t target_unknown = 0;
  int64_t blank = 0;  ///< blank lines between JSON objects, in no other count
  std::string summary() const;
};

/// Most ids of the sides of a pair, </s> counted. First a longer side is cut,
/// where a cut is given; a pair that is then beyond a limit is left out.
struct PairLimits {
  int64_t source = 0;
  int64_t target = 0;
  int64_t source_cut = 0;  ///< 0: nothing is cut
  int64_t target_cut = 0;
};

/// The fate of a pair.
enum class PairFate { kKept, kEmpty, kTooLong };

/// Cuts the sides of a pair, ids without </s>, where `limits` say so, and tells
/// what becomes of it.
PairFate cut_pair(
    std::vector<int32_t>& source, std::vector<int32_t>& target, const PairLimits& limits);

/// A parallel corpus: pair i is source->tokens(i) and target->tokens(i), ids
/// without </s>.
struct PairCorpus {
  std::shared_ptr<const TokenSource> source;
  std::shared_ptr<const TokenSource> target;
  int64_t size() const { return source->size(); }
};

/// Gives `take` the ids of every pair of parallel files, line by line, text
/// encoded; they are gone after its call. Slots carry the pieces that `find`, if given,
/// finds of two lines; of text beside binarised data they carry none. Returns how many blank
/// lines stood between JSON objects. File i of one side belongs to file i of the other.
/// Errors: other numbers of files, files of different length (with both
/// counts), invalid UTF-8 (file and line), wrong binarised data (file and
/// sentence).
int64_t read_pairs(
    const CorpusSide& source,
    const CorpusSide& target,
    const std::function<
        void(const std::vector<int32_t>& source, const std::vector<int32_t>& target)>& take,
    const FindPairPieces& find = nullptr);

/// Writes the pairs of parallel files as two token stores,
/// `stem`.source.tokens and `stem`.target.tokens, in bounded memory. Pairs with
/// an empty side or with one beyond `limits` are left out and counted, and so
/// are those kept with a side that was cut. Errors: those of read_pairs, and
/// nothing left. After an error no part of a new corpus is there.
CorpusReport write_pair_corpus(
    const CorpusSide& source,
    const CorpusSide& target,
    const PairLimits& limits,
    const std::filesystem::path& stem,
    const FindPairPieces& find = nullptr);

/// Opens what write_pair_corpus wrote; Error when the two do not fit.
PairCorpus open_pair_corpus(const std::filesystem::path& stem);

}  // namespace seqconv::internal
