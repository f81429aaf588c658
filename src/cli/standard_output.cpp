#include "cli/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace seqconv::internal::cli {

StandardOutput::StandardOutput() : std::ostream(nullptr) {
  rdbuf(&buffer_);
  // Lets the exceptions of the buffer through.
  exceptions(std::ios::badbit);
}

// What is left is dropped on purpose: main() flushes where it reports errors.
StandardOutput::~StandardOutput() = default;

StandardOutput::Buffer::Buffer() {
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

StandardOutput::Buffer::int_type StandardOutput::Buffer::overflow(int_type c) {
  write_out();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int StandardOutput::Buffer::sync() {
  write_out();
  return 0;
}

void StandardOutput::Buffer::write_out() {
  const char* next = pbase();
  const char* end = pptr();
  // Emptied first: a failed write must not be tried again on the way out.
  setp(bytes_.data(), bytes_.data() + bytes_.size());
  while (next < end) {
    const ssize_t n = ::write(STDOUT_FILENO, next, static_cast<size_t>(end - next));
    if (n >= 0) {
      next += n;
    } else if (errno == EPIPE) {
      throw OutputClosed();
    } else if (errno != EINTR) {
      seqconv::internal::fail("cannot write to standard output: ", std::strerror(errno));
    }
  }
}

}  // namespace seqconv::internal::cli
