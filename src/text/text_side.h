#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/options.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

/// One side of a text: what a language model has once and a translation model
/// twice: segmenter and vocabulary, and their place in a model folder.
namespace seqconv::internal {

using SegmenterPointer = std::shared_ptr<const Segmenter>;
using VocabularyPointer = std::shared_ptr<const Vocabulary>;

/// The segmenter that the options name, or null when it must be learned.
SegmenterPointer given_segmenter(const TextOptions& options);

/// The dictionary of a file, or null when `file` is empty. It gets slots at its end where the
/// options protect pieces.
VocabularyPointer given_vocabulary(const TextOptions& options, const std::string& file);

/// The segmenter for a vocabulary: itself, or where the options have it fall
/// back, within() the vocabulary.
SegmenterPointer fit(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const VocabularyPointer& vocabulary);

/// UsageError for contradictory options, and for keys of a model of the other task.
void check_translation_options(const TextOptions& options);
void check_language_options(const TextOptions& options);

/// The one dictionary of both sides that the options name, or null. UsageError when they
/// name two that differ.
VocabularyPointer given_joined_vocabulary(const TextOptions& options);

/// The other side of a joined vocabulary: the same pipeline, or one that
/// prepares lines of its own language.
std::shared_ptr<const TextPipeline> other_side(
    const std::shared_ptr<const TextPipeline>& side, const Preparation& preparation);

/// Raw lines for the self-test of a model folder: lines 1, 10, 100, ... of the
/// text, or the next ones that are neither blank nor long; the start of a long
/// line when there is no other.
std::vector<std::string> pick_samples(const std::vector<TextSource>& files);

/// Writes the files of one side into `folder`, their names behind `prefix`, and
/// returns the side's object: names and samples with their ids.
Json save_side(
    const std::filesystem::path& folder,
    const std::string& prefix,
    const TextPipeline& pipeline,
    const std::vector<std::string>& samples);

/// Reads the files that a side's object names; they must be inside `folder`.
/// `path` leads to the object in config.json, "text.source".
std::shared_ptr<const TextPipeline> load_side(
    const RootedPath& folder,
    const TextOptions& options,
    const Preparation& preparation,
    const Json& side,
    const std::string& path);

/// Writes what a model's text says of its options, whatever its task: subword
/// and lowercase, and of falling back, protected pieces and the tokenizer only where there are
/// any, so that the config.json of other models stays what it was.
void save_common_options(const TextOptions& options, Json& text);

/// Reads what save_common_options() wrote.
void load_common_options(const Json& text, TextOptions& options);

/// Writes the language under `key` when a tokenizer wants it, and reads it.
void save_language(
    const TextOptions& options, const char* key, const std::string& language, Json& text);
void load_language(
    const TextOptions& options, const Json& text, const char* key, std::string& language);

/// Names what of two sides turns lines into other ids or back: "dictionary",
/// "subword model", or "" for nothing. Counts of a dictionary change no id.
std::string side_difference(const TextPipeline& a, const TextPipeline& b);

/// The first key whose value is another in `b`, or which one of them lacks; ""
/// when they are equal.
std::string first_difference(const Json& a, const Json& b);

/// Encodes the samples of a side again and returns their lines. Error when an
/// id differs ("wrong vocabulary for this model"); `where` begins it.
std::vector<std::string> check_samples(
    const std::string& where,
    const TextPipeline& pipeline,
    const Json& side,
    const std::string& path);

/// Error for a "text" object that lacks a key or has another type there.
[[noreturn]] void fail_malformed(const RootedPath& folder, const UsageError& error);

}  // namespace seqconv::internal
