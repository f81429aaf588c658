#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

/// Python pickles, as data: nothing in them is ever executed.
namespace seqconv::internal {

enum class PickleKind {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,
  kTuple,
  kList,
  kSet,
  kDict,
  kGlobal,      ///< the name of a class or function
  kObject,      ///< what calling a global would have given
  kPersistent,  ///< a reference out of the pickle: a tensor's storage
};

/// Place of a node in its pickle.
using PickleId = uint32_t;

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  /// kBool, kInt (whole numbers over 64 bits: the nearest that fits).
  int64_t integer = 0;
  double real = 0;  ///< kFloat
  /// kString and kBytes: the content; kGlobal and kObject: "module.name".
  std::string_view text;
  /// Elements; of a dictionary keys and values in turn. An object's are what
  /// was added to it, as to a list or a dictionary.
  std::vector<PickleId> items;
  PickleId arguments = 0;  ///< kObject: a tuple; kPersistent: what is referred to
  PickleId state = 0;      ///< kObject: what BUILD gave it, or a kNone
};

class PickleValue;

/// A pickle of protocol 2 to 5, read by the opcodes that files of tensors use.
/// Any other opcode is an Error. Calls of functions and classes become inert
/// kObject nodes. Nodes are shared as the pickle shares them and may form
/// cycles. Strings point into the bytes, which must outlive the pickle.
class Pickle {
 public:
  /// Reads one pickle from the front of `bytes`; `consumed` is its length.
  /// `where` begins messages. Memory is bounded by the pickle's length, and by
  /// a million nodes.
  Pickle(std::span<const std::byte> bytes, const std::string& where, size_t& consumed);

  PickleValue root() const;
  const PickleNode& node(PickleId id) const { return nodes_[id]; }
  const std::vector<PickleNode>& nodes() const { return nodes_; }

 private:
  friend class PickleMachine;

  std::vector<PickleNode> nodes_;
  std::deque<std::string> names_;  // of globals
  PickleId root_ = 0;
};

/// A node and its pickle, which must outlive it.
class PickleValue {
 public:
  PickleValue(const Pickle& pickle, PickleId id) : pickle_(&pickle), id_(id) {}

  const PickleNode& node() const { return pickle_->node(id_); }
  PickleId id() const { return id_; }
  PickleKind kind() const { return node().kind; }
  bool is(PickleKind kind) const { return node().kind == kind; }
  bool is_none() const { return is(PickleKind::kNone); }
  /// True for an object of the class "module.name".
  bool is_object(std::string_view name) const {
    return is(PickleKind::kObject) && node().text == name;
  }
  /// A dictionary, or an object that is one (collections.OrderedDict,
  /// collections.defaultdict).
  bool is_dictionary() const;
  /// Entries of a dictionary in order, a later one of the same key included.
  std::vector<std::pair<PickleValue, PickleValue>> entries() const;
  /// Elements of a tuple, list or set.
  std::vector<PickleValue> elements() const;
  /// The value of a string key; a kNone when it is not there.
  PickleValue find(std::string_view key) const;

  PickleValue arguments() const { return {*pickle_, node().arguments}; }
  PickleValue state() const { return {*pickle_, node().state}; }

  /// Says what it is, for messages: "a list", "an object of the class m.n".
  std::string description() const;

  /// Settings as JSON: scalars, lists and dictionaries as they are,
  /// argparse.Namespace and OmegaConf's containers as dictionaries and lists,
  /// enumerations as their value. Anything else is the string of its
  /// description. Error beyond a depth of 32 or 100,000 values.
  Json settings() const;

 private:
  const Pickle* pickle_;
  PickleId id_;
};

}  // namespace seqconv::internal
