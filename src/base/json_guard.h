#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace seqconv::internal {

/// Deepest nesting of JSON where nothing else is said.
inline constexpr size_t kMaxJsonDepth = 32;

enum class RepeatedKeys { kReject, kAccept };

/// Reads through JSON of a stranger before it is parsed: nlohmann merges keys
/// that come twice without a word, and code that walks a value calls itself for
/// every level. (Its parser with a callback would see both, but takes quadratic
/// time.) Throws Error naming `where`. Finding a key among those of a table takes
/// time by their number, so that many make quadratic work: `max_keys` bounds them
/// where repeated ones are rejected.
class JsonGuard : public nlohmann::json_sax<nlohmann::json> {
 public:
  static void check(
      std::string_view text,
      size_t max_depth,
      const std::string& where,
      RepeatedKeys repeated = RepeatedKeys::kReject,
      size_t max_keys = std::numeric_limits<size_t>::max()) {
    // The library takes one for the end, and says nothing of what follows.
    const size_t nul = text.find('\0');
    SEQCONV_CHECK(
        nul == std::string_view::npos, where, ": not valid JSON: byte ", nul + 1, " is NUL");
    JsonGuard guard(max_depth, where, repeated, max_keys);
    nlohmann::json::sax_parse(text.begin(), text.end(), &guard);
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    SEQCONV_CHECK(
        repeated_ == RepeatedKeys::kAccept || keys_.back().insert(name).second,
        where_,
        ": '",
        shorten(name),
        "' comes twice");
    SEQCONV_CHECK(
        keys_.back().size() <= max_keys_, where_, ": a table has more than ", max_keys_, " keys");
    return true;
  }
  bool parse_error(
      std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    // The library puts its own name in brackets in front, and quotes all of
    // the last string, however long it is.
    const std::string_view what = error.what();
    const size_t name = what.find("] ");
    fail(
        where_,
        ": not valid JSON: ",
        shorten(std::string(what.substr(name == what.npos ? 0 : name + 2))));
  }

 private:
  JsonGuard(size_t max_depth, const std::string& where, RepeatedKeys repeated, size_t max_keys)
      : max_depth_(max_depth), where_(where), repeated_(repeated), max_keys_(max_keys) {}

  bool enter() {
    keys_.emplace_back();
    SEQCONV_CHECK(keys_.size() <= max_depth_, where_, ": nested too deep");
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  size_t max_depth_;
  const std::string& where_;
  RepeatedKeys repeated_;
  size_t max_keys_;
  std::vector<std::set<std::string>> keys_;  // one set a level
};

}  // namespace seqconv::internal
