#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace seqconv::internal::decode {

/// Finds the tokens that would complete an n-gram which a hypothesis already
/// holds, for hypotheses that share beginnings: a tree of tokens. The </s> that
/// starts every target is no token of it. A question takes about as long as
/// there are such tokens, however long the hypothesis is; with n = 1 those are
/// all kinds that it holds.
class RepeatedNgrams {
 public:
  /// n: 0 finds none, and then nothing is remembered.
  explicit RepeatedNgrams(int64_t n) : n_(n) {}
  RepeatedNgrams() = default;

  /// A token that follows token number `parent`, -1 at the start. Returns its
  /// number: they count from 0. With n = 0 always -1.
  int32_t add(int32_t parent, int32_t token);

  /// Appends what may not follow token number `last`, each once. -1: what
  /// nothing was said yet.
  void ban(int32_t last, std::vector<int32_t>& banned) const;

 private:
  struct Node {
    int32_t parent;
    int32_t token;
    int32_t level;      ///< tokens down to this one
    int32_t jump;       ///< one far above, or -1
    int32_t same_key;   ///< the last one before with a key like its own, or -1
    int32_t same_past;  ///< the nearest above with the same n - 1 tokens, or -1
    bool repeats;       ///< with n = 1: there is one above with its token
  };

  const Node& node(int32_t number) const { return nodes_[static_cast<size_t>(number)]; }
  int32_t level(int32_t number) const { return number < 0 ? 0 : node(number).level; }
  int32_t jump(int32_t number) const { return number < 0 ? -1 : node(number).jump; }
  int32_t above(int32_t number, int32_t level) const;
  uint64_t key(int32_t number) const;
  bool have_same_past(int32_t a, int32_t b) const;
  int32_t chain(int32_t number);
  int32_t first_of_its_token(int32_t number) const;

  int64_t n_ = 0;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, int32_t> newest_;  ///< of each key
};

}  // namespace seqconv::internal::decode
