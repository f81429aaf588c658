#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "base/rooted_path.h"

namespace seqconv::internal {

/// The plain bytes of a text that may be packed. By gzip, xz or Zstandard it is unpacked,
/// in memory of bounded size: its first bytes say so, whatever its name is, and no text
/// in UTF-8 begins with them. Bytes that a pipe has brought are given out before more are
/// waited for.
///
/// Reading throws Error where packed data are cut short or damaged, and where the text is
/// packed in a format that is not read (bzip2, zip, lz4); std::ios_base::failure, with the
/// reason in errno, where a file cannot be read on.
class PackedText : public std::istream {
 public:
  /// Opens a file that may be a pipe where the user gave it; Error when it cannot be read
  /// or is a folder.
  explicit PackedText(const RootedPath& file);
  /// Reads from a stream that outlives this one, and ahead; `name` is for messages.
  PackedText(std::istream& in, std::string name);
  ~PackedText() override;

  /// The name of the format that the text is packed in, "" for plain text; reads its
  /// beginning. Error besides where it cannot be read.
  std::string_view packing();
  /// The next bytes, some at least, until more is read; none at the end. Error besides
  /// where it cannot be read.
  std::string_view next_block();

 private:
  class Buffer;
  explicit PackedText(std::unique_ptr<Buffer> buffer);

  std::unique_ptr<Buffer> buffer_;
};

/// The whole of a text, unpacked, up to 4 GiB. Error as of PackedText, and for more.
std::string read_text_file(const RootedPath& file);

/// The number of bytes of a text, unpacked: packed files do not say it, and it is counted,
/// up to `most`. Error as of PackedText.
uint64_t count_text_bytes(const RootedPath& file, uint64_t most);

}  // namespace seqconv::internal
