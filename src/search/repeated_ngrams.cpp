#include "search/repeated_ngrams.h"

#include <algorithm>

#include "base/random.h"

namespace seqconv::internal::decode {

int32_t RepeatedNgrams::add(int32_t parent, int32_t token) {
  if (n_ <= 0)
    return -1;
  const auto number = static_cast<int32_t>(nodes_.size());
  // Jumps double: any level is a few of them away (Myers 1983).
  const int32_t far = jump(parent);
  const bool equal = level(parent) - level(far) == level(far) - level(jump(far));
  nodes_.push_back(
      {.parent = parent,
       .token = token,
       .level = level(parent) + 1,
       .jump = parent >= 0 && equal ? jump(far) : parent,
       .same_key = -1,
       .same_past = -1,
       .repeats = false});
  if (n_ == 1)
    return chain(number);
  if (level(number) < n_ - 1)
    return number;
  const auto [newest, is_first] = newest_.try_emplace(key(number), number);
  if (is_first)
    return number;
  Node& own = nodes_.back();
  own.same_key = newest->second;
  newest->second = number;
  for (int32_t other = own.same_key; other >= 0; other = node(other).same_key)
    if (level(other) < own.level && above(number, level(other)) == other &&
        have_same_past(number, other)) {
      own.same_past = other;
      break;
    }
  return number;
}

void RepeatedNgrams::ban(int32_t last, std::vector<int32_t>& banned) const {
  if (n_ <= 0 || last < 0)
    return;
  if (n_ == 1) {
    for (int32_t i = first_of_its_token(last); i >= 0; i = node(i).same_past)
      banned.push_back(node(i).token);
    return;
  }
  for (int32_t before = node(last).same_past; before >= 0; before = node(before).same_past) {
    const int32_t next = node(above(last, level(before) + 1)).token;
    if (std::ranges::find(banned, next) == banned.end())
      banned.push_back(next);
  }
}

/// With n = 1: the past of a token is empty, and those above that are the first
/// of their token hang together.
int32_t RepeatedNgrams::chain(int32_t number) {
  Node& own = nodes_.back();
  own.same_past = first_of_its_token(own.parent);
  const auto [newest, is_first] =
      newest_.try_emplace(mix_words(0, static_cast<uint64_t>(own.token)), number);
  int32_t other = is_first ? -1 : newest->second;
  own.same_key = other;
  while (other >= 0 && (level(other) >= own.level || above(number, level(other)) != other))
    other = node(other).same_key;
  own.repeats = other >= 0;
  if (!own.repeats)
    newest->second = number;
  return number;
}

/// The nearest from `number` upwards, itself too, that is the first of its
/// token.
int32_t RepeatedNgrams::first_of_its_token(int32_t number) const {
  return number >= 0 && node(number).repeats ? node(number).same_past : number;
}

/// The one at that level that `number` is or follows.
int32_t RepeatedNgrams::above(int32_t number, int32_t level) const {
  while (node(number).level > level) {
    const int32_t far = node(number).jump;
    number = this->level(far) >= level ? far : node(number).parent;
  }
  return number;
}

/// The key of the last n - 1 tokens; others may have the same.
uint64_t RepeatedNgrams::key(int32_t number) const {
  uint64_t key = 0;
  for (int64_t i = 1; i < n_; ++i, number = node(number).parent)
    key = mix_words(key, static_cast<uint64_t>(node(number).token));
  return key;
}

bool RepeatedNgrams::have_same_past(int32_t a, int32_t b) const {
  for (int64_t i = 1; i < n_; ++i) {
    if (node(a).token != node(b).token)
      return false;
    a = node(a).parent;
    b = node(b).parent;
  }
  return true;
}

}  // namespace seqconv::internal::decode
