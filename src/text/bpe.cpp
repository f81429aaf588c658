#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <queue>
#include <sstream>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/glossaries.h"
#include "text/line_reader.h"
#include "text/python_random.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kVersionLine = "#version:";
constexpr int32_t kNoSymbol = -1;
constexpr int32_t kNoPiece = -1;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// Memory of the words that are remembered, by and large.
constexpr size_t kCacheBytes = size_t{32} << 20;
/// Longer words hardly come twice.
constexpr size_t kLongestRemembered = 256;

/// The parts of a line between single blanks.
std::vector<std::string_view> split_at_blanks(std::string_view line) {
  std::vector<std::string_view> parts;
  for (size_t start = 0;;) {
    const size_t blank = line.find(' ', start);
    parts.push_back(line.substr(start, blank - start));
    if (blank == std::string_view::npos)
      return parts;
    start = blank + 1;
  }
}

/// True for version 0.1, false for 0.2; fails for others.
bool is_version_01(std::string_view header, const std::string& where) {
  const auto words = split_words(header.substr(kVersionLine.size()));
  const std::string_view version = words.empty() ? "" : words.back();
  SEQCONV_CHECK(
      version == "0.1" || version == "0.2",
      where,
      ": BPE codes of version 0.1 or 0.2 were wanted, but got '",
      header,
      "'");
  return version == "0.1";
}

}  // namespace

/// A stretch of a word: its bytes, its symbol and its neighbours.
struct Bpe::Piece {
  size_t begin;
  size_t end;
  int32_t symbol;
  int32_t previous;
  int32_t next;
};

/// Merges the pieces of one word, best rank first. All pairs of one rank are
/// merged from left to right before pairs that these merges create.
class Bpe::Merger {
 public:
  Merger(const Bpe& bpe, std::vector<Piece>& pieces) : bpe_(bpe), pieces_(pieces) {
    for (size_t i = 0; i + 1 < pieces.size(); ++i)
      offer(static_cast<int32_t>(i));
  }

  void run() {
    std::vector<int32_t> touched;
    while (!queue_.empty()) {
      const int32_t rank = queue_.top().rank;
      touched.clear();
      while (!queue_.empty() && queue_.top().rank == rank) {
        const Candidate candidate = queue_.top();
        queue_.pop();
        if (merge(candidate))
          touched.push_back(candidate.left);
      }
      for (int32_t left : touched)
        offer_around(left);
    }
  }

 private:
  struct Candidate {
    int32_t rank;
    int32_t left;  ///< index of the left piece
    int32_t left_symbol;
    int32_t right_symbol;
    int32_t result;
    bool operator>(const Candidate& other) const {
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };

  Piece& piece(int32_t i) { return pieces_[static_cast<size_t>(i)]; }

  void offer(int32_t left) {
    const int32_t right = piece(left).next;
    if (right == kNoPiece)
      return;
    const int32_t a = piece(left).symbol;
    const int32_t b = piece(right).symbol;
    const auto found = bpe_.pairs_.find(pair_key(a, b));
    if (found != bpe_.pairs_.end())
      queue_.push({found->second.rank, left, a, b, found->second.result});
  }

  void offer_around(int32_t left) {
    if (piece(left).symbol == kNoSymbol)
      return;  // a later merge of this round took it in
    if (piece(left).previous != kNoPiece)
      offer(piece(left).previous);
    offer(left);
  }

  /// False when an earlier merge has used up one of the two pieces.
  bool merge(const Candidate& candidate) {
    Piece& left = piece(candidate.left);
    if (left.symbol != candidate.left_symbol || left.next == kNoPiece ||
        piece(left.next).symbol != candidate.right_symbol)
      return false;
    Piece& right = piece(left.next);
    left.symbol = candidate.result;
    left.end = right.end;
    left.next = right.next;
    if (right.next != kNoPiece)
      piece(right.next).previous = candidate.left;
    right.symbol = kNoSymbol;
    right.next = kNoPiece;
    return true;
  }

  const Bpe& bpe_;
  std::vector<Piece>& pieces_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

/// Words that were seen before. Nobody waits for it: who finds it in use goes
/// without. So a child process of fork() does not wait for a thread of its
/// parent, which it does not have.
struct Bpe::Cache {
  using Words = std::unordered_map<std::string, std::vector<std::string>>;

  std::mutex mutex;
  PythonRandom random;  ///< of dropout
  Words words;
  size_t bytes = 0;

  static size_t bytes_of(const Words::value_type& entry) {
    constexpr size_t kEntry = 128;  // with what the map and the heap add
    size_t bytes = kEntry + entry.first.size();
    for (const std::string& piece : entry.second)
      bytes += sizeof(std::string) + piece.size();
    return bytes;
  }

  const std::vector<std::string>* find(const std::string& word) const {
    const auto found = words.find(word);
    return found == words.end() ? nullptr : &found->second;
  }
  void add(const std::string& word, const std::vector<std::string>& pieces) {
    if (word.size() > kLongestRemembered)
      return;
    if (bytes >= kCacheBytes) {
      Words().swap(words);
      bytes = 0;
    }
    bytes += bytes_of(*words.emplace(word, pieces).first);
  }
};

Bpe::Bpe(BpeOptions options)
    : options_(std::move(options)), cache_(new Cache{.random = PythonRandom(options_.seed)}) {
  if (!(options_.dropout >= 0 && options_.dropout <= 1))
    fail_usage("BPE dropout must be a probability from 0 to 1, but got ", options_.dropout);
  if (!options_.glossaries.empty())
    glossaries_ = std::make_unique<Glossaries>(options_.glossaries);
}
Bpe::Bpe(Bpe&& other) noexcept = default;
Bpe& Bpe::operator=(Bpe&& other) noexcept = default;
Bpe::~Bpe() {
  // In a child process a thread that is no more may have left it half changed.
  if (cache_ && !cache_->mutex.try_lock())
    static_cast<void>(cache_.release());
  else if (cache_)
    cache_->mutex.unlock();
}

Bpe Bpe::load(const std::filesystem::path& path, BpeOptions options) {
  LineReader reader(path);
  std::string text;
  std::string line;
  while (reader.next(line))
    text += line + "\n";
  SEQCONV_CHECK(!text.empty(), path.string(), ": BPE codes were wanted, but the file is empty");
  return parse(text, path.string(), std::move(options));
}

Bpe Bpe::parse(std::string_view text, const std::string& name, BpeOptions options) {
  Bpe bpe(std::move(options));
  const int64_t most = bpe.options_.merges;
  bpe.codes_ = text;
  bpe.end_is_a_symbol_ = true;
  const size_t end = text.find_last_not_of("\r\n ") + 1;
  std::istringstream stream(bpe.codes_.substr(0, end));
  LineReader reader(stream, name, BadBytes::kReject);
  std::string line;
  size_t columns = 2;
  std::vector<Pair> merges;
  while ((most < 0 || std::ssize(merges) < most) && reader.next(line)) {
    const bool first = reader.line_number() == 1;
    if (first && line.starts_with(kVersionLine)) {
      bpe.end_is_a_symbol_ = is_version_01(line, reader.where());
      continue;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line.erase(0, line.find_first_not_of(' '));
    const auto parts = split_at_blanks(line);
    if (first && parts.size() == 3) {
      columns = 3;  // fastBPE
      bpe.end_is_a_symbol_ = false;
    }
    SEQCONV_CHECK(
        parts.size() == columns && !parts[0].empty() && !parts[1].empty(),
        reader.where(),
        ": ",
        columns == 2 ? "two symbols separated by a blank" : "two symbols and a count",
        " were wanted, but got '",
        line,
        "'");
    merges.emplace_back(parts[0], parts[1]);
    bpe.add_merge(merges.back());
  }
  if (bpe.options_.vocabulary)
    bpe.remember_parts(merges);
  return bpe;
}

int32_t Bpe::intern(const std::string& symbol) {
  const auto next = static_cast<int32_t>(symbols_.size());
  return symbols_.emplace(symbol, next).first->second;
}

int32_t Bpe::find_symbol(const std::string& symbol) const {
  const auto found = symbols_.find(symbol);
  return found == symbols_.end() ? kNoSymbol : found->second;
}

void Bpe::add_merge(const Pair& pair) {
  const auto& [left, right] = pair;
  const uint64_t key = pair_key(intern(left), intern(right));
  // The first line of a pair that comes twice counts.
  pairs_.emplace(key, Merge{lines_++, intern(left + right)});
}

std::vector<Bpe::Piece> Bpe::initial_pieces(std::string_view word) const {
  const auto characters = split_characters(word);
  std::vector<Piece> pieces;
  pieces.reserve(characters.size() + 1);
  size_t begin = 0;
  for (size_t i = 0; i < characters.size(); ++i) {
    std::string symbol(characters[i]);
    if (!end_is_a_symbol_ && i + 1 == characters.size())
      symbol += kEndOfWord;
    const auto index = static_cast<int32_t>(i);
    const size_t end = begin + characters[i].size();
    pieces.push_back({begin, end, find_symbol(symbol), index - 1, index + 1});
    begin = end;
  }
  if (end_is_a_symbol_) {
    const auto index = static_cast<int32_t>(pieces.size());
    const int32_t symbol = find_symbol(std::string(kEndOfWord));
    pieces.push_back({begin, begin, symbol, index - 1, index + 1});
  }
  pieces.back().next = kNoPiece;
  return pieces;
}

std::vector<std::string> Bpe::segment_word(std::string_view word) const {
  if (options_.dropout == 0)
    return split_word(word);
  const std::lock_guard lock(cache_->mutex);
  return split_word(word);
}

std::vector<std::string> Bpe::split_word(std::string_view word) const {
  if (word.empty())
    return {};
  size_t first_end = 0;
  next_code_point(word, first_end);
  if (first_end == word.size())
    return {std::string(word)};  // one character stays as it is
  std::vector<std::string> pieces = merge(word);
  return options_.vocabulary ? keep_to_vocabulary(pieces) : pieces;
}

std::vector<std::string> Bpe::merge(std::string_view word) const {
  std::vector<Piece> pieces = initial_pieces(word);
  if (options_.dropout > 0)
    merge_with_dropout(pieces);
  else
    Merger(*this, pieces).run();
  std::vector<std::string> out;
  for (int32_t i = 0; i != kNoPiece;) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    if (piece.end > piece.begin)  // not a lone end-of-word symbol
      out.emplace_back(word.substr(piece.begin, piece.end - piece.begin));
    i = piece.next;
  }
  return out;
}

/// In rounds, as subword-nmt: of the pairs of neighbours some are passed over,
/// and the best of the others is merged wherever it was not. Draws one number
/// for each pair, in their order.
void Bpe::merge_with_dropout(std::vector<Piece>& pieces) const {
  const auto at = [&](int32_t i) -> Piece& { return pieces[static_cast<size_t>(i)]; };
  std::vector<std::pair<int32_t, Merge>> offered;  // left piece and merge
  for (;;) {
    offered.clear();
    for (int32_t i = 0; at(i).next != kNoPiece; i = at(i).next) {
      if (cache_->random.next() <= options_.dropout)
        continue;
      const auto found = pairs_.find(pair_key(at(i).symbol, at(at(i).next).symbol));
      if (found != pairs_.end())
        offered.emplace_back(i, found->second);
    }
    if (offered.empty())
      return;
    const auto rank = [](const auto& offer) { return offer.second.rank; };
    const int32_t best = rank(*std::ranges::min_element(offered, {}, rank));
    int32_t taken = kNoPiece;  // right piece of the merge before
    for (const auto& [left, merge] : offered) {
      if (merge.rank != best || left == taken)
        continue;
      taken = at(left).next;
      at(left).symbol = merge.result;
      at(left).end = at(taken).end;
      at(left).next = at(taken).next;
    }
  }
}

std::vector<std::string> Bpe::segment_with_separators(const std::string& word) const {
  std::vector<std::string> pieces;
  if (glossaries_) {
    for (const std::string& part : glossaries_->isolate(word)) {
      if (glossaries_->is_whole(part)) {
        pieces.push_back(part);
        continue;
      }
      const std::vector<std::string> more = split_word(part);
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
  } else {
    pieces = split_word(word);
  }
  for (size_t i = 0; i + 1 < pieces.size(); ++i)
    pieces[i] += options_.separator;
  return pieces;
}

std::vector<std::string> Bpe::segment_words(const std::vector<std::string_view>& words) const {
  std::vector<std::string> out;
  const bool draws = options_.dropout > 0;  // another result each time
  std::unique_lock lock(cache_->mutex, std::defer_lock);
  if (draws)
    lock.lock();
  const bool remembers = !draws && lock.try_lock();
  for (const std::string_view view : words) {
    const std::string word(view);
    const auto* const known = remembers ? cache_->find(word) : nullptr;
    if (known != nullptr) {
      out.insert(out.end(), known->begin(), known->end());
      continue;
    }
    const std::vector<std::string> pieces = segment_with_separators(word);
    out.insert(out.end(), pieces.begin(), pieces.end());
    if (remembers)
      cache_->add(word, pieces);
  }
  return out;
}

std::string Bpe::segment_line(std::string_view line) const {
  std::string out;
  for (std::string_view part : split_lines(line))
    out += segment_one_line(part);
  return out;
}

std::string Bpe::segment_one_line(std::string_view line) const {
  constexpr std::string_view kBlanks = "\r\n ";
  const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  if (begin == line.size())
    return std::string(line);
  const size_t end = line.find_last_not_of(kBlanks) + 1;
  std::string out(line.substr(0, begin));
  const char* between = "";
  for (const std::string& piece : segment_words(split_at_blanks(line.substr(begin, end - begin)))) {
    out += between;
    out += piece;
    between = " ";
  }
  out += line.substr(end);
  return out;
}

std::string join_bpe(std::string_view line) {
  std::string padded = concat(line, " ");
  const std::string marker = concat(Bpe::kJoiner, " ");
  std::string out;
  for (size_t start = 0;;) {
    const size_t found = padded.find(marker, start);
    out.append(padded, start, found - start);
    if (found == std::string::npos)
      break;
    start = found + marker.size();
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace seqconv::internal
