#pragma once

#include <memory>

#include "text/corpus/samples.h"
#include "text/corpus/word_aligner.h"

/// Sentence pairs with the links of their words.
namespace seqconv::internal {

/// Numbers of `most` samples at most, evenly spread, of sides that are neither empty nor
/// longer than 200 tokens: longer pairs tell little and cost much.
std::vector<uint32_t> spread_samples(const SampleSource& samples, int64_t most);

/// Takes spread_samples(), or every second of them, every fourth and so on: as many as a
/// WordAligner has memory for (kMostProducts).
std::vector<uint32_t> spread_samples_to_learn(const SampleSource& samples, int64_t most);

/// Learns which words translate each other from spread_samples_to_learn(). Ids are below the
/// sizes of the vocabularies.
WordAligner learn_words(
    const SampleSource& samples,
    int64_t source_vocabulary,
    int64_t target_vocabulary,
    int64_t most);

/// Links of a sample, by source, then target.
std::vector<AlignedTokens> align_sample(
    const WordAligner& words, const SampleSource& samples, uint32_t sample);

/// Samples whose batches have the links that `words` finds, made with each batch anew.
std::shared_ptr<const SampleSource> aligned_samples(
    std::shared_ptr<const SampleSource> samples, std::shared_ptr<const WordAligner> words);

}  // namespace seqconv::internal
