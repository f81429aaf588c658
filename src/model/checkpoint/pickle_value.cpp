#include <cmath>

#include "base/error.h"
#include "model/checkpoint/pickle.h"

namespace seqconv::internal {
namespace {

constexpr int kDeepest = 32;
constexpr int kMostSettings = 100'000;

bool is_dictionary_class(std::string_view name) {
  return name == "collections.OrderedDict" || name == "collections.defaultdict" ||
      name == "builtins.dict";
}

/// Turns values into JSON within limits: shared nodes may unfold into more than
/// memory holds, cycles into no end.
class SettingsWriter {
 public:
  Json write(const PickleValue& value, int depth = 0) {
    SEQCONV_CHECK(
        depth < kDeepest && ++written_ < kMostSettings,
        "the stored arguments are nested too deep or too many");
    const PickleNode& node = value.node();
    switch (node.kind) {
      case PickleKind::kNone:
        return nullptr;
      case PickleKind::kBool:
        return node.integer != 0;
      case PickleKind::kInt:
        return node.integer;
      case PickleKind::kFloat:
        return std::isfinite(node.real) ? Json(node.real) : Json();
      case PickleKind::kString:
        return std::string(node.text);
      case PickleKind::kTuple:
      case PickleKind::kList:
      case PickleKind::kSet:
        return list(value.elements(), depth);
      case PickleKind::kDict:
        return table(value, depth);
      case PickleKind::kObject:
        return object(value, depth);
      case PickleKind::kBytes:
      case PickleKind::kGlobal:
      case PickleKind::kPersistent:
        break;
    }
    return value.description();
  }

 private:
  Json list(const std::vector<PickleValue>& elements, int depth) {
    Json result = Json::array();
    for (const PickleValue& element : elements)
      result.push_back(write(element, depth + 1));
    return result;
  }

  Json table(const PickleValue& value, int depth) {
    Json result = Json::object();
    for (const auto& [key, entry] : value.entries())
      if (key.is(PickleKind::kString))
        result[std::string(key.node().text)] = write(entry, depth + 1);
    return result;
  }

  Json object(const PickleValue& value, int depth) {
    const std::string_view name = value.node().text;
    if (value.is_dictionary())
      return table(value, depth);
    if (name == "argparse.Namespace" && value.state().is_dictionary())
      return table(value.state(), depth);
    if (name.starts_with("omegaconf."))
      return omegaconf(value, depth);
    // An enumeration's member is made of its value.
    const auto arguments = value.arguments().elements();
    if (arguments.size() == 1 && arguments[0].is(PickleKind::kString))
      return write(arguments[0], depth + 1);
    return value.description();
  }

  /// Containers keep what they hold in `_content`, leaves in `_val`.
  Json omegaconf(const PickleValue& value, int depth) {
    for (const char* field : {"_content", "_val"})
      for (const auto& [key, held] : value.state().entries())
        if (key.is(PickleKind::kString) && key.node().text == field)
          return write(held, depth + 1);
    return value.description();
  }

  int written_ = 0;
};

}  // namespace

bool PickleValue::is_dictionary() const {
  return is(PickleKind::kDict) || (is(PickleKind::kObject) && is_dictionary_class(node().text));
}

std::vector<std::pair<PickleValue, PickleValue>> PickleValue::entries() const {
  std::vector<std::pair<PickleValue, PickleValue>> result;
  if (!is_dictionary())
    return result;
  const std::vector<PickleId>& items = node().items;
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    result.emplace_back(PickleValue(*pickle_, items[i]), PickleValue(*pickle_, items[i + 1]));
  // Python 2 gave a list of pairs to the class.
  if (is(PickleKind::kObject))
    for (const PickleValue& argument : arguments().elements())
      for (const PickleValue& pair : argument.elements())
        if (const auto parts = pair.elements(); parts.size() == 2)
          result.emplace_back(parts[0], parts[1]);
  return result;
}

std::vector<PickleValue> PickleValue::elements() const {
  std::vector<PickleValue> result;
  if (is(PickleKind::kTuple) || is(PickleKind::kList) || is(PickleKind::kSet))
    for (const PickleId item : node().items)
      result.emplace_back(*pickle_, item);
  return result;
}

PickleValue PickleValue::find(std::string_view key) const {
  PickleValue found(*pickle_, 0);
  for (const auto& [name, value] : entries())
    if (name.is(PickleKind::kString) && name.node().text == key)
      found = value;
  return found;
}

std::string PickleValue::description() const {
  switch (kind()) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "a truth value";
    case PickleKind::kInt:
    case PickleKind::kFloat:
      return "a number";
    case PickleKind::kString:
      return "a string";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kSet:
      return "a set";
    case PickleKind::kDict:
      return "a dictionary";
    case PickleKind::kGlobal:
      return concat("the class or function ", node().text);
    case PickleKind::kObject:
      return concat("an object of the class ", node().text);
    case PickleKind::kPersistent:
      return "a storage";
  }
  return "something unknown";
}

Json PickleValue::settings() const {
  return SettingsWriter().write(*this);
}

}  // namespace seqconv::internal
