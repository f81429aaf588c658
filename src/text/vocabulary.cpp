#include "text/vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <sstream>
#include <utility>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/line_reader.h"
#include "text/slots.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kOverwrite = " #fairseq:overwrite";
constexpr std::string_view kMadeUp = "madeupword";
constexpr size_t kMadeUpDigits = 4;

/// A line of dict.txt, taken apart.
struct Entry {
  std::string symbol;
  int64_t count = 0;
  bool overwrite = false;
};

/// The number that Python's int() reads from `text`: a sign perhaps, digits, a
/// single underscore between two of them perhaps; the nearest that there is
/// where 64 bits do not hold it. False when `text` is none.
bool parse_count(std::string_view text, int64_t& count) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+'))
    text.remove_prefix(1);
  std::string digits(negative ? "-" : "");
  bool digit = false;  // before this character
  for (const char c : text) {
    const bool was_digit = std::exchange(digit, c >= '0' && c <= '9');
    if (digit)
      digits += c;
    else if (c != '_' || !was_digit)
      return false;
  }
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, count).ec == std::errc::result_out_of_range)
    count = negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  return digit;
}

Entry parse_entry(std::string_view line, const std::string& where) {
  Entry entry;
  std::string_view rest = trim_end(line);
  if (rest.ends_with(kOverwrite)) {
    entry.overwrite = true;
    rest.remove_suffix(kOverwrite.size());
  }
  const size_t blank = rest.rfind(' ');
  const auto wrong = [&] { fail(where, ": 'symbol count' was wanted, but got '", line, "'"); };
  if (blank == std::string_view::npos || blank == 0)
    wrong();
  // A count below 0 is what scores of pieces become; nothing depends on it.
  if (!parse_count(rest.substr(blank + 1), entry.count))
    wrong();
  entry.symbol = rest.substr(0, blank);
  return entry;
}

/// Keeps the first `most` symbols in their order, with all the required ones.
void cut_to(
    size_t most,
    const std::set<std::string>& required,
    std::vector<std::pair<std::string_view, int64_t>>& symbols) {
  const auto is_required = [&](const auto& entry) {
    return required.contains(std::string(entry.first));
  };
  const auto needed =
      static_cast<size_t>(std::count_if(symbols.begin(), symbols.end(), is_required));
  size_t others = most - std::min(most, needed);
  std::erase_if(symbols, [&](const auto& entry) {
    if (is_required(entry))
      return false;
    if (others == 0)
      return true;
    --others;
    return false;
  });
}

std::string made_up_word(int64_t number) {
  const std::string digits = std::to_string(number);
  const size_t zeros = kMadeUpDigits - std::min(digits.size(), kMadeUpDigits);
  return concat(kMadeUp, std::string(zeros, '0'), digits);
}

bool is_made_up(std::string_view symbol) {
  if (!symbol.starts_with(kMadeUp))
    return false;
  const std::string_view digits = symbol.substr(kMadeUp.size());
  return digits.size() >= kMadeUpDigits &&
      digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Vocabulary::Vocabulary() {
  for (std::string_view symbol : kSpecialSymbols)
    add(std::string(symbol), 1);
}

void Vocabulary::add(std::string symbol, int64_t count) {
  const auto id = static_cast<int32_t>(symbols_.size());
  if (count == 0 && is_made_up(symbol))
    padding_.push_back(id);
  ids_[symbol] = id;
  symbols_.push_back(std::move(symbol));
  counts_.push_back(count);
}

Vocabulary Vocabulary::build(
    const std::map<std::string, int64_t>& counts,
    int64_t min_count,
    int64_t max_size,
    int64_t multiple,
    const std::set<std::string>& required) {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string_view, int64_t>> kept;
  for (const auto& [symbol, count] : counts)
    if ((count >= min_count || required.contains(symbol)) && !vocabulary.ids_.contains(symbol))
      kept.emplace_back(symbol, count);
  std::stable_sort(
      kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (max_size > 0)
    cut_to(static_cast<size_t>(std::max<int64_t>(max_size - vocabulary.size(), 0)), required, kept);
  for (const auto& [symbol, count] : kept)
    vocabulary.add(std::string(symbol), count);
  for (int64_t n = 0; vocabulary.size() % multiple != 0; ++n)
    if (const std::string word = made_up_word(n); !vocabulary.ids_.contains(word))
      vocabulary.add(word, 0);
  return vocabulary;
}

std::vector<CountedSymbol> read_symbol_counts(const std::filesystem::path& path) {
  std::vector<CountedSymbol> rows;
  LineReader reader(path);
  std::string line;
  while (reader.next(line)) {
    Entry entry = parse_entry(line, reader.where());
    rows.push_back({std::move(entry.symbol), entry.count});
  }
  return rows;
}

Vocabulary Vocabulary::load(const RootedPath& path) {
  LineReader reader(path);
  return read(reader, path.string());
}

Vocabulary Vocabulary::parse(const std::string& text, const std::string& name) {
  std::istringstream stream(text);
  LineReader reader(stream, name, BadBytes::kReject);
  return read(reader, name);
}

Vocabulary Vocabulary::read(LineReader& reader, const std::string& name) {
  Vocabulary vocabulary;
  std::string line;
  while (reader.next(line)) {
    Entry entry = parse_entry(line, reader.where());
    SEQCONV_CHECK(
        entry.overwrite || !vocabulary.ids_.contains(entry.symbol),
        reader.where(),
        ": the symbol '",
        entry.symbol,
        "' is there already, as id ",
        vocabulary.id(entry.symbol),
        " (a line may end in",
        kOverwrite,
        " to replace it)");
    vocabulary.add(std::move(entry.symbol), entry.count);
  }
  SEQCONV_CHECK(
      vocabulary.size() > kSpecialIds, name, ": a dictionary was wanted, but the file is empty");
  return vocabulary;
}

std::string Vocabulary::to_text() const {
  std::string text;
  std::unordered_map<std::string_view, bool> seen;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const bool again = !seen.emplace(symbols_[i], true).second;
    if (i >= kSpecialSymbols.size())
      text += concat(symbols_[i], " ", counts_[i], again ? kOverwrite : std::string_view(), "\n");
  }
  // Readers drop a byte order mark, which would be the first symbol's own.
  const size_t mark = text.size() - skip_byte_order_mark(text).size();
  return text.substr(0, mark) + text;
}

int32_t Vocabulary::id(std::string_view symbol) const {
  const auto found = ids_.find(std::string(symbol));
  return found == ids_.end() ? kUnknownId : found->second;
}

int32_t Vocabulary::text_id(std::string_view symbol) const {
  const int32_t found = id(symbol);
  return is_text(found) && !slot_of(found) ? found : kUnknownId;
}

int32_t Vocabulary::token_id(std::string_view symbol) const {
  const int32_t found = id(symbol);
  return is_text(found) ? found : kUnknownId;
}

std::optional<size_t> Vocabulary::slot_of(int32_t id) const {
  const auto found = std::ranges::find(slots_, id);
  if (found == slots_.end())
    return std::nullopt;
  return static_cast<size_t>(found - slots_.begin());
}

void Vocabulary::add_slots() {
  slots_.clear();
  for (const std::string& symbol : slot_symbols()) {
    if (!ids_.contains(symbol))
      add(symbol, 0);
    slots_.push_back(id(symbol));
  }
}

void Vocabulary::need_slots(const std::string& name) {
  for (const std::string& symbol : slot_symbols())
    SEQCONV_CHECK(
        ids_.contains(symbol),
        name,
        ": the symbols of protected pieces (text.protect) were wanted, but '",
        symbol,
        "' is missing");
  add_slots();
}

bool Vocabulary::has(std::string_view symbol) const {
  return symbol == kUnknownSymbol || text_id(symbol) != kUnknownId;
}

const std::string& Vocabulary::symbol(int32_t id) const {
  SEQCONV_CHECK(id >= 0 && id < size(), "an id must be from 0 to ", size() - 1, ", but got ", id);
  return symbols_[static_cast<size_t>(id)];
}

}  // namespace seqconv::internal
