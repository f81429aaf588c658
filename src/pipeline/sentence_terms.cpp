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

const Terminology kNoTerms;

bool is_in_words(char32_t c) {
  return is_part_of_word(c) && !is_written_without_spaces(c);
}

bool needs_no_blank(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_written_without_spaces(next_code_point(text, at));
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

/// Adds terms as long as there is room for them.
class TermList {
 public:
  TermList(const TermWords& words, const Slots& slots, Result& result)
      : words_(words), slots_(slots), result_(result) {}

  void add(std::string_view target) {
    std::vector<int32_t> ids = words_.encode(target, slots_);
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

  const TermWords& words_;
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

const TermWords::Found& TermWords::found() const {
  if (const Found* const known = found_.load(std::memory_order_acquire))
    return *known;
  const Vocabulary& vocabulary = text_->vocabulary();
  auto own = std::make_unique<Found>();
  int64_t behind_blanks = 0, all = 0;  // tokens of scripts that need no blanks
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const Edges edges = edges_of(*text_, id);
    own->edges.open.push_back(edges.open);
    own->edges.joins.push_back(edges.joins);
    if (needs_no_blank(text_->segmenter().surface(vocabulary.symbol(id)))) {
      all += vocabulary.count(id);
      behind_blanks += vocabulary.symbol(id).starts_with(kBlankMark) ? vocabulary.count(id) : 0;
    }
  }
  own->has_blanks = behind_blanks > all / 3;  // otherwise in front of lines alone
  const Found* known = nullptr;
  return found_.compare_exchange_strong(known, own.get()) ? *own.release() : *known;
}

/// SentencePiece puts a blank in front of a text, which scripts that are written without do not
/// have within one.
std::vector<int32_t> TermWords::encode(std::string_view term, const Slots& slots) const {
  std::vector<int32_t> ids = text_->encode(term, slots);
  if (ids.empty() || text_->segmenter().kind() != Subword::kSentencePiece ||
      !needs_no_blank(term) || found().has_blanks)
    return ids;
  const Vocabulary& vocabulary = text_->vocabulary();
  const std::string first = vocabulary.symbol(ids.front());
  if (first == kBlankMark)
    ids.erase(ids.begin());
  else if (first.starts_with(kBlankMark) && vocabulary.has(first.substr(kBlankMark.size())))
    ids.front() = vocabulary.id(first.substr(kBlankMark.size()));
  return ids;
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
  TermList terms(*system.term_words, sentence.slots, result);
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
