#include "model/checkpoint/pickle_writer.h"

#include <bit>
#include <limits>

#include "model/checkpoint/pickle_opcodes.h"

namespace seqconv::internal {

using namespace pickle;

template <class T>
void PickleWriter::number(T value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

PickleWriter::PickleWriter() {
  bytes_ += static_cast<char>(kProto);
  bytes_ += '\2';
}

void PickleWriter::none() {
  bytes_ += kNone;
}

void PickleWriter::boolean(bool value) {
  bytes_ += static_cast<char>(value ? kNewTrue : kNewFalse);
}

void PickleWriter::integer(int64_t value) {
  using Int32 = std::numeric_limits<int32_t>;
  if (value >= Int32::min() && value <= Int32::max()) {
    bytes_ += kBinInt;
    number(static_cast<int32_t>(value));
  } else {
    bytes_ += static_cast<char>(kLong1);
    bytes_ += static_cast<char>(sizeof value);
    number(value);
  }
}

void PickleWriter::real(double value) {
  bytes_ += kBinFloat;
  number(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
}

void PickleWriter::text(std::string_view value) {
  bytes_ += kBinUnicode;
  number(static_cast<uint32_t>(value.size()));
  bytes_ += value;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  bytes_ += kGlobal;
  bytes_.append(module).append("\n").append(name).append("\n");
}

void PickleWriter::begin_dictionary() {
  bytes_ += kEmptyDict;
  bytes_ += kMark;
}

void PickleWriter::end_dictionary() {
  bytes_ += kSetItems;
}

void PickleWriter::begin_ordered_dictionary() {
  global("collections", "OrderedDict");
  bytes_ += kEmptyTuple;
  call();
  bytes_ += kMark;
}

void PickleWriter::begin_list() {
  bytes_ += kEmptyList;
  bytes_ += kMark;
}

void PickleWriter::end_list() {
  bytes_ += kAppends;
}

void PickleWriter::begin_tuple() {
  bytes_ += kMark;
}

void PickleWriter::end_tuple() {
  bytes_ += kTuple;
}

void PickleWriter::persistent() {
  bytes_ += kBinPersistent;
}

void PickleWriter::call() {
  bytes_ += kReduce;
}

void PickleWriter::json(const Json& value) {
  if (value.is_object()) {
    begin_dictionary();
    for (const auto& [key, entry] : value.items()) {
      text(key);
      json(entry);
    }
    end_dictionary();
  } else if (value.is_array()) {
    begin_list();
    for (const Json& entry : value)
      json(entry);
    end_list();
  } else if (value.is_boolean()) {
    boolean(value.get<bool>());
  } else if (value.is_number_integer()) {
    integer(value.get<int64_t>());
  } else if (value.is_number()) {
    real(value.get<double>());
  } else if (value.is_string()) {
    text(value.get<std::string>());
  } else {
    none();
  }
}

std::string PickleWriter::finish() {
  bytes_ += kStop;
  return std::move(bytes_);
}

}  // namespace seqconv::internal
