#include "model/checkpoint/pickle.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "model/checkpoint/pickle_opcodes.h"

namespace seqconv::internal {
namespace {

using namespace pickle;

constexpr size_t kMostNodes = 1'000'000;
constexpr size_t kMostOperations = 4'000'000;
constexpr int64_t kProtocols = 5;

}  // namespace

/// The pickle's stack machine, which builds nodes instead of objects.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::span<const std::byte> bytes, const std::string& where)
      : pickle_(pickle), bytes_(bytes), where_(where) {
    push({});  // node 0 is the kNone that fields refer to by default
    stack_.clear();
  }

  size_t run() {
    for (size_t operations = 0;; ++operations) {
      if (operations == kMostOperations)
        reject("it has more than ", kMostOperations, " operations");
      start_ = position_;
      const uint8_t opcode = byte();
      if (opcode == kStop)
        break;
      execute(opcode);
    }
    pickle_.root_ = pop();
    return position_;
  }

 private:
  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(where_, ": the pickle is malformed at byte ", start_, ": ", parts...);
  }

  // Bytes.

  std::span<const std::byte> take(uint64_t size) {
    if (size > bytes_.size() - position_)
      reject(size, " bytes must follow, but there are only ", bytes_.size() - position_);
    const auto taken = bytes_.subspan(position_, static_cast<size_t>(size));
    position_ += static_cast<size_t>(size);
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view characters(uint64_t size) {
    const auto taken = take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  std::string_view line() {
    const auto rest = bytes_.subspan(position_);
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      reject("a name has no end");
    position_ += end + 1;
    return text.substr(0, end);
  }

  // The stack.

  void push_id(PickleId id) { stack_.push_back(id); }
  void push(PickleNode node) {
    if (pickle_.nodes_.size() == kMostNodes)
      reject("it has more than ", kMostNodes, " values");
    pickle_.nodes_.push_back(std::move(node));
    push_id(static_cast<PickleId>(pickle_.nodes_.size() - 1));
  }
  PickleId pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor)
      reject("a value is missing");
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  /// What lies above the last mark.
  std::vector<PickleId> pop_mark() {
    if (marks_.empty())
      reject("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<PickleId> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return items;
  }
  PickleNode& top() {
    const PickleId id = pop();
    push_id(id);
    return pickle_.nodes_[id];
  }

  // Operations.

  void push_integer(int64_t value) { push({.kind = PickleKind::kInt, .integer = value}); }
  void push_bool(bool value) { push({.kind = PickleKind::kBool, .integer = value}); }
  void push_text(PickleKind kind, std::string_view text) { push({.kind = kind, .text = text}); }

  /// Little-endian, two's complement, of any length.
  void push_long(std::span<const std::byte> digits) {
    const bool negative = !digits.empty() && (digits.back() & std::byte{0x80}) != std::byte{0};
    uint64_t value = negative ? ~uint64_t{0} : 0;
    bool fits = true;
    for (size_t i = 0; i < digits.size(); ++i) {
      const auto digit = static_cast<uint64_t>(digits[i]);
      if (i < sizeof value) {
        value &= ~(uint64_t{0xFF} << (8 * i));
        value |= digit << (8 * i);
      } else if (digit != (negative ? 0xFF : 0)) {
        fits = false;
      }
    }
    using Limits = std::numeric_limits<int64_t>;
    if (!fits || (static_cast<int64_t>(value) < 0) != negative)
      push_integer(negative ? Limits::min() : Limits::max());
    else
      push_integer(static_cast<int64_t>(value));
  }

  void push_tuple(size_t size) {
    std::vector<PickleId> items(size);
    for (size_t i = size; i-- > 0;)
      items[i] = pop();
    push({.kind = PickleKind::kTuple, .items = std::move(items)});
  }

  void push_global(std::string_view module, std::string_view name) {
    pickle_.names_.push_back(concat(module, ".", name));
    push_text(PickleKind::kGlobal, pickle_.names_.back());
  }

  void push_stack_global() {
    const PickleNode& name = pickle_.nodes_[pop()];
    const PickleNode& module = pickle_.nodes_[pop()];
    if (name.kind != PickleKind::kString || module.kind != PickleKind::kString)
      reject("a global's name must be two strings");
    push_global(module.text, name.text);
  }

  void call() {
    const PickleId arguments = pop();
    const PickleNode& callee = pickle_.nodes_[pop()];
    // What an object returns when called is as unknown as the object.
    if (callee.kind != PickleKind::kGlobal && callee.kind != PickleKind::kObject)
      reject("only a global can be called");
    if (pickle_.nodes_[arguments].kind != PickleKind::kTuple)
      reject("arguments must be a tuple");
    push({.kind = PickleKind::kObject, .text = callee.text, .arguments = arguments});
  }

  void build() {
    const PickleId state = pop();
    PickleNode& object = top();
    if (object.kind != PickleKind::kObject)
      reject("only an object has a state");
    object.state = state;
  }

  void add_items(const std::vector<PickleId>& items, PickleKind kind) {
    PickleNode& target = top();
    if (target.kind != kind && target.kind != PickleKind::kObject)
      reject("items are added to what has none");
    if (kind == PickleKind::kDict && items.size() % 2 != 0)
      reject("a key has no value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void put(uint64_t key) { memo_[key] = (top(), stack_.back()); }
  void get(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end())
      reject("nothing was put under ", key);
    push_id(found->second);
  }

  void execute(uint8_t opcode) {
    switch (opcode) {
      case kProto:
        return check_protocol(byte());
      case kFrame:
        take(sizeof(uint64_t));
        return;
      case kMark:
        return marks_.push_back(stack_.size());
      case kPop:
        pop();
        return;
      case kPopMark:
        pop_mark();
        return;
      case kBinPut:
        return put(byte());
      case kLongBinPut:
        return put(number<uint32_t>());
      case kMemoize:
        return put(memo_.size());
      case kBinGet:
        return get(byte());
      case kLongBinGet:
        return get(number<uint32_t>());
      default:
        if (!push_scalar(opcode) && !push_container(opcode) && !change_object(opcode))
          reject("no checkpoint uses opcode ", static_cast<int>(opcode));
    }
  }

  void check_protocol(int64_t protocol) const {
    if (protocol < 2 || protocol > kProtocols)
      reject("the protocol must be 2 to ", kProtocols, ", but it is ", protocol);
  }

  bool push_scalar(uint8_t opcode) {
    switch (opcode) {
      case kNone:
        push({});
        return true;
      case kNewTrue:
      case kNewFalse:
        push_bool(opcode == kNewTrue);
        return true;
      case kBinInt:
        push_integer(number<int32_t>());
        return true;
      case kBinInt1:
        push_integer(byte());
        return true;
      case kBinInt2:
        push_integer(number<uint16_t>());
        return true;
      case kLong1:
        push_long(take(byte()));
        return true;
      case kBinFloat:
        push(
            {.kind = PickleKind::kFloat,
             .real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()))});
        return true;
      case kBinUnicode:
        push_text(PickleKind::kString, characters(number<uint32_t>()));
        return true;
      case kShortBinUnicode:
        push_text(PickleKind::kString, characters(byte()));
        return true;
      case kBinUnicode8:
        push_text(PickleKind::kString, characters(number<uint64_t>()));
        return true;
      case kBinBytes:
        push_text(PickleKind::kBytes, characters(number<uint32_t>()));
        return true;
      case kShortBinBytes:
        push_text(PickleKind::kBytes, characters(byte()));
        return true;
      default:
        return false;
    }
  }

  bool push_container(uint8_t opcode) {
    switch (opcode) {
      case kEmptyDict:
        push({.kind = PickleKind::kDict});
        return true;
      case kEmptyList:
        push({.kind = PickleKind::kList});
        return true;
      case kEmptySet:
        push({.kind = PickleKind::kSet});
        return true;
      case kEmptyTuple:
        push_tuple(0);
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_tuple(opcode - kTuple1 + 1u);
        return true;
      case kTuple:
        push({.kind = PickleKind::kTuple, .items = pop_mark()});
        return true;
      default:
        return false;
    }
  }

  bool change_object(uint8_t opcode) {
    switch (opcode) {
      case kGlobal: {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case kStackGlobal:
        push_stack_global();
        return true;
      case kReduce:
      case kNewObject:
        call();
        return true;
      case kNewObjectEx:
        pop();  // keyword arguments
        call();
        return true;
      case kBuild:
        build();
        return true;
      case kBinPersistent:
        push({.kind = PickleKind::kPersistent, .arguments = pop()});
        return true;
      case kAppend:
        add_items({pop()}, PickleKind::kList);
        return true;
      case kAppends:
        add_items(pop_mark(), PickleKind::kList);
        return true;
      case kAddItems:
        add_items(pop_mark(), PickleKind::kSet);
        return true;
      case kSetItem: {
        const PickleId value = pop();
        const PickleId key = pop();
        add_items({key, value}, PickleKind::kDict);
        return true;
      }
      case kSetItems:
        add_items(pop_mark(), PickleKind::kDict);
        return true;
      default:
        return false;
    }
  }

  Pickle& pickle_;
  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t position_ = 0;
  size_t start_ = 0;  // of the present operation
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleId> memo_;
};

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& where, size_t& consumed) {
  consumed = PickleMachine(*this, bytes, where).run();
}

PickleValue Pickle::root() const {
  return {*this, root_};
}

}  // namespace seqconv::internal
