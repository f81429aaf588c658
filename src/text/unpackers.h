#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace seqconv::internal {

/// A format that text may be packed in.
enum class Packing { kGzip, kXz, kZstandard };

/// Unpacks bytes as they come, in memory that does not grow with their number. Members,
/// streams and frames that follow one another are one text.
class Unpacker {
 public:
  virtual ~Unpacker() = default;

  /// Takes bytes from the front of `in` and puts others to the front of `out`, which are
  /// shorter by as much then. `ended` says that no bytes follow `in`. Returns what is
  /// wrong with them, "" where nothing is. std::bad_alloc where memory lacks.
  virtual std::string step(std::span<const char>& in, std::span<char>& out, bool ended) = 0;
  /// Tells whether the bytes so far are whole: they may end here.
  virtual bool is_whole() const = 0;
};

/// An unpacker of the format. std::bad_alloc where memory lacks.
std::unique_ptr<Unpacker> make_unpacker(Packing packing);

}  // namespace seqconv::internal
