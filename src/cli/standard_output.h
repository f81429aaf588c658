#pragma once

#include <array>
#include <ostream>
#include <streambuf>

#include "base/error.h"

namespace seqconv::internal::cli {

/// Whoever read standard output has gone away (`| head`): the program ends
/// without a word and without an error.
class SEQCONV_VISIBLE OutputClosed : public Error {
 public:
  OutputClosed() : Error("standard output was closed") {}
};

/// Standard output that notices when a write fails. A write to a closed pipe
/// throws OutputClosed, any other failure an Error with the system's reason;
/// std::cout would swallow both.
class StandardOutput : public std::ostream {
 public:
  StandardOutput();
  ~StandardOutput() override;

 private:
  class Buffer : public std::streambuf {
   public:
    Buffer();

   protected:
    int_type overflow(int_type c) override;
    int sync() override;

   private:
    void write_out();
    std::array<char, 1 << 16> bytes_;
  };
  Buffer buffer_;
};

}  // namespace seqconv::internal::cli
