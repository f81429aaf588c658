#include "metrics/porter_stemmer.h"

#include <array>
#include <cstddef>
#include <span>

namespace seqconv::internal::metrics {
namespace {

struct Ending {
  std::string_view from;
  std::string_view to;
};

// Of two endings of one word the longer one comes first.
constexpr std::array<Ending, 22> kStep2 = {
    {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
     {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
     {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
     {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
     {"logi", "log"},    {"fulli", "ful"}}};
constexpr std::string_view kOnlyNltk = "fulli";

constexpr std::array<Ending, 7> kStep3 = {
    {{"icate", "ic"},
     {"ative", ""},
     {"alize", "al"},
     {"iciti", "ic"},
     {"ical", "ic"},
     {"ful", ""},
     {"ness", ""}}};

constexpr std::array<Ending, 16> kStep4 = {
    {{"al", ""},
     {"ance", ""},
     {"ence", ""},
     {"er", ""},
     {"ic", ""},
     {"able", ""},
     {"ible", ""},
     {"ant", ""},
     {"ement", ""},
     {"ou", ""},
     {"ism", ""},
     {"ate", ""},
     {"iti", ""},
     {"ous", ""},
     {"ive", ""},
     {"ize", ""}}};

/// What NLTK looks up instead of stemming.
constexpr std::array<Ending, 16> kNltkWords = {
    {{"sky", "sky"},
     {"skies", "sky"},
     {"dying", "die"},
     {"lying", "lie"},
     {"tying", "tie"},
     {"news", "news"},
     {"innings", "inning"},
     {"inning", "inning"},
     {"outings", "outing"},
     {"outing", "outing"},
     {"cannings", "canning"},
     {"canning", "canning"},
     {"howe", "howe"},
     {"proceed", "proceed"},
     {"exceed", "exceed"},
     {"succeed", "succeed"}}};

/// What the steps ask of a stem.
struct Shape {
  int measure = 0;  ///< how often consonants follow vowels
  bool has_vowel = false;
  bool ends_in_consonant = false;
  bool ends_short = false;  ///< consonant, vowel, consonant but w, x, y
};

Shape shape_of(std::string_view stem, StemmerRules rules) {
  Shape shape;
  std::array<bool, 3> vowels{};  // of the last letters
  for (size_t i = 0; i < stem.size(); ++i) {
    const char c = stem[i];
    const bool before = vowels[2];
    const bool vowel =
        c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || (c == 'y' && i > 0 && !before);
    if (before && !vowel)
      ++shape.measure;
    shape.has_vowel |= vowel;
    vowels = {vowels[1], vowels[2], vowel};
  }
  if (stem.empty())
    return shape;
  const char last = stem.back();
  shape.ends_in_consonant = !vowels[2];
  shape.ends_short = vowels[1] && !vowels[2] &&
      (stem.size() > 2 ? !vowels[0] && last != 'w' && last != 'x' && last != 'y'
                       : rules == StemmerRules::kNltk);
  return shape;
}

int measure_without(std::string_view word, size_t ending, StemmerRules rules) {
  return shape_of(word.substr(0, word.size() - ending), rules).measure;
}

void drop(std::string& word, size_t letters) {
  word.resize(word.size() - letters);
}

/// Step 1a.
void drop_plural(std::string& word, StemmerRules rules) {
  if (rules == StemmerRules::kNltk && word.size() == 4 && word.ends_with("ies"))
    drop(word, 1);
  else if (word.ends_with("sses") || word.ends_with("ies"))
    drop(word, 2);
  else if (word.ends_with('s') && !word.ends_with("ss"))
    drop(word, 1);
}

bool ends_in_double_consonant(const std::string& word, StemmerRules rules) {
  if (word.size() < 2 || word.back() != word[word.size() - 2])
    return false;
  const bool known = rules == StemmerRules::kNltk || word.back() != 'y';
  return known && shape_of(word, rules).ends_in_consonant;
}

/// Step 1b, for what stays of a word without "ed" or "ing".
void restore_end(std::string& word, StemmerRules rules) {
  if (word.ends_with("at") || word.ends_with("bl") || word.ends_with("iz")) {
    word += 'e';
  } else if (ends_in_double_consonant(word, rules)) {
    if (word.back() != 'l' && word.back() != 's' && word.back() != 'z')
      drop(word, 1);
  } else if (const Shape shape = shape_of(word, rules); shape.measure == 1 && shape.ends_short) {
    word += 'e';
  }
}

/// Step 1b.
void drop_past(std::string& word, StemmerRules rules) {
  if (rules == StemmerRules::kNltk && word.ends_with("ied")) {
    drop(word, word.size() == 4 ? 1 : 2);
    return;
  }
  if (word.ends_with("eed")) {
    if (measure_without(word, 3, rules) > 0)
      drop(word, 1);
    return;
  }
  size_t ending = 0;
  if (word.ends_with("ed"))
    ending = 2;
  else if (word.ends_with("ing"))
    ending = 3;
  const std::string_view stem(word.data(), word.size() - ending);
  if (ending == 0 || !shape_of(stem, rules).has_vowel)
    return;
  drop(word, ending);
  restore_end(word, rules);
}

/// Step 1c.
void turn_y(std::string& word, StemmerRules rules) {
  if (!word.ends_with('y'))
    return;
  const Shape stem = shape_of(std::string_view(word).substr(0, word.size() - 1), rules);
  if (rules == StemmerRules::kNltk ? word.size() > 2 && stem.ends_in_consonant : stem.has_vowel)
    word.back() = 'i';
}

/// Replaces the first ending that the word has, where the stem before it has
/// more than `measure`.
void replace_ending(
    std::string& word, std::span<const Ending> endings, int measure, StemmerRules rules) {
  for (const Ending& ending : endings) {
    if (!word.ends_with(ending.from) || (rules != StemmerRules::kNltk && ending.from == kOnlyNltk))
      continue;
    // NLTK counts the "l" of "logi" as part of the stem.
    const bool keep = rules == StemmerRules::kNltk && ending.from == "logi";
    const size_t length = ending.from.size();
    if (measure_without(word, keep ? length - 1 : length, rules) > measure)
      drop(word, length), word += ending.to;
    return;
  }
}

void step_2(std::string& word, StemmerRules rules) {
  // NLTK begins again after this one.
  while (rules == StemmerRules::kNltk && word.ends_with("alli") &&
         measure_without(word, 4, rules) > 0)
    drop(word, 2);
  replace_ending(word, kStep2, 0, rules);
}

/// "ion" is an ending behind "s" and "t" only.
bool ends_in_ion(const std::string& word) {
  return word.ends_with("sion") || word.ends_with("tion");
}

void step_4(std::string& word, StemmerRules rules) {
  const auto try_ending = [&](std::string_view ending) {
    const bool found = word.ends_with(ending);
    if (found && measure_without(word, ending.size(), rules) > 1)
      drop(word, ending.size());
    return found;
  };
  const size_t before = word.size();
  replace_ending(word, kStep4, 1, rules);
  if (rules == StemmerRules::kNltk) {
    if (word.size() != before || word.ends_with("ement"))
      return;
    if (!try_ending("ment") && !try_ending("ent") && ends_in_ion(word))
      try_ending("ion");
    return;
  }
  try_ending("ment");
  if (!try_ending("ent") && ends_in_ion(word))
    try_ending("ion");
}

void step_5(std::string& word, StemmerRules rules) {
  if (word.ends_with('e')) {
    const Shape stem = shape_of(std::string_view(word).substr(0, word.size() - 1), rules);
    if (stem.measure > 1 || (stem.measure == 1 && !stem.ends_short))
      drop(word, 1);
  }
  if (word.ends_with("ll") && shape_of(word, rules).measure > 1)
    drop(word, 1);
}

}  // namespace

std::string porter_stem(std::string_view word, StemmerRules rules) {
  if (rules == StemmerRules::kNltk)
    for (const Ending& entry : kNltkWords)
      if (word == entry.from)
        return std::string(entry.to);
  std::string stem(word);
  drop_plural(stem, rules);
  drop_past(stem, rules);
  turn_y(stem, rules);
  step_2(stem, rules);
  replace_ending(stem, kStep3, 0, rules);
  step_4(stem, rules);
  step_5(stem, rules);
  return stem;
}

}  // namespace seqconv::internal::metrics
