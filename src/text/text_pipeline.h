#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/rooted_path.h"
#include "seqconv/requests.h"
#include "text/preparation.h"
#include "text/slots.h"
#include "text/text_options.h"
#include "text/vocabulary.h"

namespace seqconv::internal {

class Segmenter;  // text/segmenter.h: one for each Subword

/// Raw line <-> ids, for a language model or one side of a translation model.
class TextPipeline {
 public:
  TextPipeline(
      std::shared_ptr<const Segmenter> segmenter,
      std::shared_ptr<const Vocabulary> vocabulary,
      Preparation preparation = {});

  /// A line as encode() reads it if pieces are protected: clean, and free of stand-ins.
  /// Pieces are found in it.
  std::string line_of_pieces(std::string_view line) const;
  /// The slots of a line: those of its protected pieces, none where nothing is protected.
  Slots slots_of(std::string_view line) const;

  /// Symbols of a line: prepared (cleaned, and what else the options want),
  /// split into subwords, with the slots of its own protected pieces.
  std::vector<std::string> segment(std::string_view line) const;
  /// Gives these symbols, but for slots, to `take` one by one; a view is gone after its call.
  void visit_symbols(
      std::string_view line, const std::function<void(std::string_view)>& take) const;
  /// Ids of a line without </s>. An empty line gives no ids, nor does one of
  /// blanks only, but for characters and bytes, which count blanks. Text that
  /// spells <s>, <pad>, </s> or a slot is unknown, never the special id.
  /// Protected pieces are slots: of the line itself, or where `slots` are given, those that
  /// they have a spelling of.
  std::vector<int32_t> encode(std::string_view line) const;
  std::vector<int32_t> encode(std::string_view line, const Slots& slots) const;
  /// Ids of a line that line_of_pieces() made, these pieces of it, in order, as slots.
  std::vector<int32_t> encode_pieces(
      std::string_view line, std::span<const PieceInSlot> pieces) const;
  /// Text of ids; </s>, <s> and <pad> are left out, subwords joined, Moses
  /// tokens put together. Unknown symbols print as <unk>, slots as their spellings, those that
  /// have none as their symbols. Valid UTF-8, but for
  /// bytes that break off within a character. Error for ids outside the
  /// vocabulary.
  std::string decode(const std::vector<int32_t>& ids, const Slots& slots = {}) const;
  /// Does that, and tells where slots stand in the text.
  LineInSlots decode_pieces(const std::vector<int32_t>& ids, const Slots& slots) const;
  /// The bytes of `text`, a line or what decode() made, that each of its symbols stands for
  /// (text/token_ranges.h).
  std::vector<ByteRange> find_ranges(
      std::string_view text, std::span<const std::string> symbols, const Slots& slots = {}) const;
  /// The symbols of ids as the model sees them.
  std::vector<std::string> symbols(const std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Segmenter& segmenter() const { return *segmenter_; }
  const Preparation& preparation() const { return preparation_; }
  /// This pipeline for lines that are prepared in another way.
  TextPipeline with(Preparation preparation) const;

 private:
  using TakeSymbol = std::function<void(std::string_view)>;
  using TakeSlot = std::function<void(size_t)>;
  struct Between;

  bool protects() const { return !preparation_.protects().empty(); }
  bool keeps_blanks() const;
  void visit(
      std::string_view line,
      std::span<const PieceInSlot> pieces,
      const TakeSymbol& take,
      const TakeSlot& take_slot) const;
  void visit_between(const Between& text, const TakeSymbol& take, const TakeSlot& take_slot) const;
  std::string join_around_slots(const std::vector<int32_t>& ids) const;

  std::shared_ptr<const Segmenter> segmenter_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Preparation preparation_;
};

/// Leaves the first `most` tokens of a sentence, </s> counted but not among its
/// ids; 0: all. True when there were more.
bool cut_tokens(std::vector<int32_t>& ids, int64_t most);

/// Both sides of a translation model, as stored in its folder.
struct TranslationText {
  TextOptions options;
  std::shared_ptr<const TextPipeline> source;
  std::shared_ptr<const TextPipeline> target;
  /// The longest source, </s> counted: a longer one is cut (cut_tokens); 0:
  /// none is.
  int64_t max_source_tokens = 0;
  /// Raw lines for the self-test of load().
  std::vector<std::string> source_samples;
  std::vector<std::string> target_samples;

  /// Learns (or loads, where the options name files) subwords and vocabularies
  /// from the training files. Vocabularies count the symbols of all training
  /// lines, in one streaming pass; where nothing is left to be learned, files
  /// give samples alone and may be missing. With `joined`, one dictionary named
  /// by either key serves both sides, each in its own language. UsageError for
  /// contradictory options and for keys of a language model, Error with file
  /// and line for bad text.
  static TranslationText create(
      const TextOptions& options,
      const std::vector<TextSource>& source_files,
      const std::vector<TextSource>& target_files);

  /// The text of dictionaries and subwords that the options name; Error when they do
  /// not name all. It has no samples.
  static TranslationText given(const TextOptions& options);

  /// Writes vocabulary and subword files into `folder` and returns the "text"
  /// object of config.json: the options that matter, the names of the files
  /// and, as a self-test, a few raw samples with their ids.
  Json save(const std::filesystem::path& folder) const;

  /// Reads what save() wrote and re-encodes the samples; Error when one id
  /// differs ("wrong vocabulary for this model"), and for the text of a
  /// language model. File names in `text` must stay inside `folder`.
  static TranslationText load(const RootedPath& folder, const Json& text);
};

/// Tells what makes two texts turn lines into other ids, or ids into other
/// lines: a key of config.json's "text" or "source dictionary" and the like; ""
/// when nothing does. Samples, and a vocabulary that is joined or not, make no
/// difference.
std::string difference(const TranslationText& a, const TranslationText& b);

}  // namespace seqconv::internal
