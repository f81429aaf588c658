#include "metrics/tokens_13a.h"

#include <array>

#include "base/characters.h"
#include "base/utf8.h"
#include "metrics/spacing.h"

namespace seqconv::internal::metrics {
namespace {

/// What a byte is to the rules.
enum class Kind13a : uint8_t {
  kOther,
  kDigit,
  kBlank,
  kSymbol,  ///< a token by itself
  kPoint,   ///< or comma: a token unless it stands between digits
  kDash,    ///< a token behind a digit
  kLead,    ///< begins a character beyond ASCII that may be a blank
};

constexpr std::array<Kind13a, 256> kKinds = [] {
  std::array<Kind13a, 256> kinds{};
  const auto set = [&](int first, int last, Kind13a kind) {
    for (int c = first; c <= last; ++c)
      kinds[static_cast<size_t>(c)] = kind;
  };
  set('!', '/', Kind13a::kSymbol);
  set(':', '@', Kind13a::kSymbol);
  set('[', '`', Kind13a::kSymbol);
  set('{', '~', Kind13a::kSymbol);
  set('\'', '\'', Kind13a::kOther);
  set(',', ',', Kind13a::kPoint);
  set('.', '.', Kind13a::kPoint);
  set('-', '-', Kind13a::kDash);
  set('0', '9', Kind13a::kDigit);
  set(0x09, 0x0D, Kind13a::kBlank);
  set(0x1C, 0x20, Kind13a::kBlank);
  set(0xC2, 0xC2, Kind13a::kLead);
  set(0xE1, 0xE3, Kind13a::kLead);
  return kinds;
}();

Kind13a kind_of(char c) {
  return kKinds[static_cast<unsigned char>(c)];
}

/// The bytes of the white space character at `at`; 0 where another one stands.
size_t space_length(std::string_view text, size_t at) {
  size_t end = at;
  return is_space(next_code_point(text, end)) ? end - at : 0;
}

/// Cuts a line in one pass. The original puts blanks around symbols, then, in
/// three passes over pairs of neighbours, around points without digits on both
/// sides and dashes behind digits. Only where points follow each other does it
/// matter that its pairs do not overlap: such a stretch goes through the
/// passes.
class Cutter13a {
 public:
  Cutter13a(std::string_view line, WordNumbers& texts) : line_(line), texts_(texts) {
    tokens_.reserve(line.size() / 4);
  }

  std::vector<std::string_view> run() {
    while (at_ < line_.size())
      take(kind_of(line_[at_]));
    end_token();
    return std::move(tokens_);
  }

 private:
  void take(Kind13a kind) {
    switch (kind) {
      case Kind13a::kOther:
      case Kind13a::kDigit:
        ++at_;
        return;
      case Kind13a::kBlank:
        pass_blank(1);
        return;
      case Kind13a::kSymbol:
        cut_out();
        first_of_stretch_ = tokens_.size();
        stretch_ = at_;
        return;
      case Kind13a::kPoint:
        take_point();
        return;
      case Kind13a::kDash:
        if (is_digit(at_ - 1))
          cut_out();
        else
          ++at_;
        return;
      case Kind13a::kLead:
        if (const size_t length = space_length(line_, at_); length > 0)
          pass_blank(length);
        else
          ++at_;
        return;
    }
  }

  void take_point() {
    if (is_point(at_ - 1) || is_point(at_ + 1))
      take_stretch();
    else if (is_digit(at_ - 1) && is_digit(at_ + 1))
      ++at_;
    else
      cut_out();
  }

  /// Cuts the stretch between blanks and symbols around here by the passes.
  void take_stretch() {
    while (at_ < line_.size() && !ends_stretch(kind_of(line_[at_])))
      ++at_;
    std::string text = " ";
    text += line_.substr(stretch_, at_ - stretch_);
    const std::string& spaced = texts_.keep(space_points(text += ' '));
    tokens_.resize(first_of_stretch_);
    for (std::string_view token : split_words(spaced))
      tokens_.push_back(token);
    token_ = stretch_ = at_;
    first_of_stretch_ = tokens_.size();
  }

  bool ends_stretch(Kind13a kind) const {
    return kind == Kind13a::kBlank || kind == Kind13a::kSymbol ||
        (kind == Kind13a::kLead && space_length(line_, at_) > 0);
  }

  /// Makes the byte here a token.
  void cut_out() {
    end_token();
    tokens_.push_back(line_.substr(at_, 1));
    token_ = ++at_;
  }

  void end_token() {
    if (at_ > token_)
      tokens_.push_back(line_.substr(token_, at_ - token_));
  }

  void pass_blank(size_t length) {
    end_token();
    token_ = stretch_ = at_ += length;
    first_of_stretch_ = tokens_.size();
  }

  bool is_digit(size_t at) const {
    return at < line_.size() && kind_of(line_[at]) == Kind13a::kDigit;
  }
  bool is_point(size_t at) const {
    return at < line_.size() && kind_of(line_[at]) == Kind13a::kPoint;
  }

  std::string_view line_;
  WordNumbers& texts_;
  std::vector<std::string_view> tokens_;
  size_t at_ = 0;
  size_t token_ = 0;             // where it begins
  size_t stretch_ = 0;           // where what is between blanks and symbols begins
  size_t first_of_stretch_ = 0;  // token
};

/// What the original replaces before it looks for tokens.
std::string replace_markup(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_entities(text);
  return text;
}

}  // namespace

std::vector<std::string_view> split_13a(std::string_view line, WordNumbers& texts) {
  bool marked = false;
  for (char c : line)
    marked |= c == '&' || c == '<' || c == '\n';
  if (marked)
    line = texts.keep(replace_markup(line));
  return Cutter13a(line, texts).run();
}

}  // namespace seqconv::internal::metrics
