#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace seqconv::internal {

/// Writes a pickle of protocol 2, value after value. Containers are opened and
/// closed; what comes between belongs to them, keys and values in turn.
class PickleWriter {
 public:
  PickleWriter();

  void none();
  void boolean(bool value);
  void integer(int64_t value);
  void real(double value);
  void text(std::string_view value);
  void global(std::string_view module, std::string_view name);

  void begin_dictionary();
  void end_dictionary();
  void begin_ordered_dictionary();
  void begin_list();
  void end_list();
  void begin_tuple();
  void end_tuple();

  /// Makes a reference out of the last value, a tuple.
  void persistent();
  /// Calls the value before the last one, a global, with the last, a tuple.
  void call();

  /// A table as dictionaries, lists and scalars.
  void json(const Json& value);

  /// Ends the pickle and gives its bytes.
  std::string finish();

 private:
  template <class T>
  void number(T value);

  std::string bytes_;
};

}  // namespace seqconv::internal
