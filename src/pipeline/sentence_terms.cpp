#include "pipeline/sentence_terms.h"

#include <algorithm>
#include <map>

#include "base/characters.h"
#include "base/special_ids.h"
#include "base/utf8.h"
#include "text/segmenter.h"
#include "text/terminology.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // U+2581, of SentencePiece

const Terminology kNoTerms;

bool is_in_words(char32_t c) {
  return is_part_of_word(c) && !is_written_without_spaces(c);
}

/// The edges of one symbol.
struct Edges {
  bool open = false;
  bool joins = false;
};

Edges edges_of(const TextPipeline& text, int32_t id) {
  const std::string& symbol = text.vocabulary().symbol(id);
  if (!is_text(id) || text.vocabulary().slot_of(id))
    return {};
  if (text.segmenter().kind() == Subword::kBpe)
    return {symbol.ends_with("@@"), true};
  const std::string surface = text.segmenter().surface(symbol);
  if (surface.empty() || text.segmenter().kind() == Subword::kNone)
    return {};
  size_t first = 0, last = surface.size();
  return {
      is_in_words(previous_code_point(surface, last)),
      !symbol.starts_with(kBlankMark) && is_in_words(next_code_point(surface, first))};
}

/// Behind the last byte of a line that its first `tokens` tokens stand for.
size_t read_end(
    const TextPipeline& text, const std::string& line, size_t tokens, const Slots& slots) {
  std::vector<std::string> symbols = text.segment(line);
  if (tokens >= symbols.size())
    return line.size();
  symbols.resize(tokens);
  const std::vector<ByteRange> ranges = text.find_ranges(line, symbols, slots);
  return ranges.empty() ? 0 : static_cast<size_t>(ranges.back().end);
}

/// Ids of a term among other words. SentencePiece puts a blank in front of a text, which scripts
/// that are written without do not have within one.
std::vector<int32_t> encode_term(
    const TextPipeline& text, std::string_view term, const Slots& slots) {
  std::vector<int32_t> ids = text.encode(term, slots);
  size_t at = 0;
  if (ids.empty() || text.segmenter().kind() != Subword::kSentencePiece ||
      !is_written_without_spaces(next_code_point(term, at)))
    return ids;
  const Vocabulary& vocabulary = text.vocabulary();
  const std::string first = vocabulary.symbol(ids.front());
  if (!first.starts_with(kBlankMark))
    return ids;
  if (first == kBlankMark)
    ids.erase(ids.begin());
  else if (const int32_t bare = vocabulary.token_id(first.substr(kBlankMark.size()));
           bare != kUnknownId)
    ids.front() = bare;
  return ids;
}

/// Adds terms as long as there is room for them.
class TermList {
 public:
  TermList(const TextPipeline& text, const Slots& slots, Result& result)
      : text_(text), slots_(slots), result_(result) {}

  void add(std::string_view target) {
    std::vector<int32_t> ids = encode_term(text_, target, slots_);
    if (ids.empty() || std::ranges::find(ids, kUnknownId) != ids.end()) {
      note(concat(
          "term '",
          shorten(std::string(target)),
          "' is left out: the model's vocabulary cannot spell it"));
    } else if (terms_.ids.size() == kMostTerms || tokens_ + std::ssize(ids) > kMostTermTokens) {
      ++left_out_;
    } else {
      tokens_ += std::ssize(ids);
      terms_.ids.push_back(std::move(ids));
      terms_.targets.emplace_back(target);
    }
  }

  SentenceTerms take() {
    if (left_out_ > 0)
      note(concat(
          left_out_,
          left_out_ == 1 ? " term is" : " terms are",
          " left out: a text has at most ",
          kMostTerms,
          " of ",
          kMostTermTokens,
          " tokens together"));
    return std::move(terms_);
  }

 private:
  void note(std::string text) {
    if (std::ranges::find(result_.notes, text) == result_.notes.end())
      result_.notes.push_back(std::move(text));
  }

  const TextPipeline& text_;
  const Slots& slots_;
  Result& result_;
  SentenceTerms terms_;
  int64_t tokens_ = 0;
  int64_t left_out_ = 0;
};

int64_t count_in(std::string_view text, std::string_view term) {
  int64_t count = 0;
  for (size_t at = text.find(term); at != text.npos; at = text.find(term, at + term.size()))
    ++count;
  return count;
}

}  // namespace

const WordEdges& TermWords::edges() const {
  if (const WordEdges* const known = edges_.load(std::memory_order_acquire))
    return *known;
  auto own = std::make_unique<WordEdges>();
  for (int32_t id = 0; id < text_->vocabulary().size(); ++id) {
    const Edges edges = edges_of(*text_, id);
    own->open.push_back(edges.open);
    own->joins.push_back(edges.joins);
  }
  const WordEdges* known = nullptr;
  return edges_.compare_exchange_strong(known, own.get()) ? *own.release() : *known;
}

SentenceTerms terms_of(
    const TranslationSystem& system, const SentenceWithTerms& sentence, Result& result) {
  const TranslationRequest& request = sentence.request;
  const Terminology& all = system.terminology ? *system.terminology : kNoTerms;
  if (request.terms.empty() && all.empty())
    return {};
  if (sentence.is_drawn || request.text.empty()) {
    result.notes.emplace_back("the terminology is not heeded: it is for searches of texts");
    return {};
  }
  const Terminology own(request.terms);
  const TextPipeline& text = *system.text.source;
  const std::string line = text.line_of_pieces(request.text);
  const std::vector<TermInText> found = find_terms(line, own, all);
  if (found.empty())
    return {};
  const size_t end = read_end(text, line, sentence.source.size(), sentence.slots);
  TermList terms(*system.text.target, sentence.slots, result);
  for (const TermInText& term : found)
    if (term.end <= end)
      terms.add(term.target);
  return terms.take();
}

void note_missing_terms(
    const TranslationSystem& system,
    const std::vector<std::string>& terms,
    std::string_view translation,
    Result& result) {
  const auto as_model = [&](std::string_view text) {
    return system.text.options.lowercase ? to_lower(text) : std::string(text);
  };
  std::map<std::string, int64_t> wanted;
  for (const std::string& term : terms)
    ++wanted[term];
  const std::string text = as_model(translation);
  for (const auto& [term, count] : wanted)
    if (const int64_t there = count_in(text, as_model(term)); there < count)
      result.notes.push_back(concat(
          "term '",
          shorten(term),
          count == 1 ? "' is not in the translation"
                     : concat("' must come ", count, " times, but comes ", there, " times")));
}

}  // namespace seqconv::internal
