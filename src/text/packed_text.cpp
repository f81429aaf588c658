#include "text/packed_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <streambuf>

#include "base/error.h"
#include "text/unpackers.h"

namespace seqconv::internal {
namespace {

constexpr size_t kBlock = size_t{1} << 16;
constexpr size_t kMostOfAText = size_t{4} << 30;

/// The beginning of a format.
struct Signature {
  std::string_view name;
  std::string_view pattern;  ///< '?' stands for any byte
  /// So many bytes of it are no UTF-8: a text that ends behind them is of the format too.
  size_t certain;
  std::optional<Packing> packing;  ///< none: not read
};

template <size_t N>
constexpr std::string_view pattern_of(const char (&text)[N]) {
  return {text, N - 1};  // NULs too
}

constexpr Signature kSignatures[] = {
    {"gzip", pattern_of("\x1F\x8B\x08"), 2, Packing::kGzip},
    {"xz", pattern_of("\xFD\x37zXZ\0"), 2, Packing::kXz},
    {"Zstandard", pattern_of("\x28\xB5\x2F\xFD"), 2, Packing::kZstandard},
    // pzstd's frames come behind their sizes.
    {"Zstandard",
     pattern_of("\x50\x2A\x4D\x18\x04\0\0\0????\x28\xB5\x2F\xFD"),
     14,
     Packing::kZstandard},
    {"bzip2", pattern_of("BZh?1AY&SY"), 10, std::nullopt},
    {"bzip2", pattern_of("BZh?\x17\x72\x45\x38\x50\x90"), 10, std::nullopt},  // of an empty file
    {"zip", pattern_of("PK\x03\x04?\0"), 6, std::nullopt},
    {"lz4", pattern_of("\x04\x22\x4D\x18"), 4, std::nullopt},
};

/// True where bytes and pattern agree as far as both go.
bool agrees(std::string_view pattern, std::string_view head) {
  for (size_t i = 0; i < std::min(pattern.size(), head.size()); ++i)
    if (pattern[i] != '?' && pattern[i] != head[i])
      return false;
  return true;
}

/// The signature that a text begins with; nullptr for plain text, and nothing while bytes
/// that follow decide. `ended`: none follow.
std::optional<const Signature*> recognise(std::string_view head, bool ended) {
  bool open = false;
  for (const Signature& signature : kSignatures) {
    if (!agrees(signature.pattern, head))
      continue;
    const size_t wanted = ended ? signature.certain : signature.pattern.size();
    if (head.size() >= wanted)
      return &signature;
    open = true;
  }
  if (open && !ended)
    return std::nullopt;
  return nullptr;
}

}  // namespace

class PackedText::Buffer : public std::streambuf {
 public:
  /// `fd` is closed at the end.
  Buffer(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  Buffer(std::string name, std::streambuf* source) : name_(std::move(name)), source_(source) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override {
    if (fd_ >= 0)
      ::close(fd_);
  }

  /// The name of the format, "" for plain text; reads the beginning.
  std::string_view packing() {
    while (!known_) {
      const auto found = recognise({in_.data(), in_.size()}, ended_);
      if (found)
        begin(*found);
      else
        refill();
    }
    return packing_;
  }

  /// The bytes that are there to be read, and are read then.
  std::string_view take() {
    const std::string_view text(gptr(), static_cast<size_t>(egptr() - gptr()));
    setg(eback(), egptr(), egptr());
    return text;
  }

  [[noreturn]] void fail_read() const {
    internal::fail("cannot read '", name_, "': ", std::strerror(errno));
  }

 protected:
  int_type underflow() override {
    const auto text = packing().empty() ? plain() : unpacked();
    setg(text.data(), text.data(), text.data() + text.size());
    return text.empty() ? traits_type::eof() : traits_type::to_int_type(text.front());
  }

 private:
  void begin(const Signature* signature) {
    if (signature != nullptr) {
      SEQCONV_CHECK(
          signature->packing,
          "cannot read '",
          name_,
          "': text, or text that gzip, xz or Zstandard has packed, was wanted, but it is packed "
          "by ",
          signature->name,
          ": unpack it first");
      unpacker_ = make_unpacker(*signature->packing);
      output_ = std::make_unique_for_overwrite<char[]>(kBlock);
      packing_ = signature->name;
    }
    known_ = true;
  }

  std::span<char> plain() {
    if (in_.empty() && !ended_)
      refill();
    const auto text = in_;
    in_ = {};
    return text;
  }

  std::span<char> unpacked() {
    for (;;) {
      if (in_.empty() && !ended_)
        refill();
      if (in_.empty() && unpacker_->is_whole())
        return {};
      std::span<char> room(output_.get(), kBlock);
      std::span<const char> rest = in_;
      const std::string wrong = unpacker_->step(rest, room, ended_);
      consumed_ += in_.size() - rest.size();
      in_ = in_.last(rest.size());
      if (!wrong.empty())
        fail_unpack("damaged near byte ", consumed_, ": ", wrong);
      if (room.size() < kBlock)
        return {output_.get(), kBlock - room.size()};
      if (in_.empty() && ended_ && !unpacker_->is_whole())
        fail_unpack("cut short: they end behind byte ", consumed_);
    }
  }

  template <class... Parts>
  [[noreturn]] void fail_unpack(const Parts&... parts) const {
    internal::fail("cannot unpack '", name_, "': its ", packing_, " data are ", parts...);
  }

  /// Reads bytes behind those that are not taken yet.
  void refill() {
    const size_t kept = in_.size();
    // Until the format is known, all bytes are there; later none is left.
    const size_t got = read({input_.get() + kept, kBlock - kept});
    ended_ = got == 0;
    in_ = {input_.get(), kept + got};
  }

  /// Waits for some bytes, not for all; 0 at the end.
  size_t read(std::span<char> into) {
    if (source_ != nullptr) {
      if (traits_type::eq_int_type(source_->sgetc(), traits_type::eof()))
        return 0;
      const auto there = std::clamp<std::streamsize>(source_->in_avail(), 1, std::ssize(into));
      return static_cast<size_t>(source_->sgetn(into.data(), there));
    }
    ssize_t got = 0;
    do
      got = ::read(fd_, into.data(), into.size());
    while (got < 0 && errno == EINTR);
    if (got < 0)  // the stream is bad then, and whoever reads it says errno
      throw std::ios_base::failure("read");
    return static_cast<size_t>(got);
  }

  std::string name_;
  int fd_ = -1;
  std::streambuf* source_ = nullptr;
  std::unique_ptr<char[]> input_ = std::make_unique_for_overwrite<char[]>(kBlock);
  std::span<char> in_;  // of it, not taken yet
  bool ended_ = false;
  bool known_ = false;
  std::string_view packing_;
  std::unique_ptr<Unpacker> unpacker_;
  std::unique_ptr<char[]> output_;
  uint64_t consumed_ = 0;  // packed bytes
};

PackedText::PackedText(std::unique_ptr<Buffer> buffer)
    : std::istream(nullptr), buffer_(std::move(buffer)) {
  rdbuf(buffer_.get());
  exceptions(std::ios_base::badbit);  // what the buffer throws comes out
}

PackedText::PackedText(const RootedPath& file)
    : PackedText(std::make_unique<Buffer>(file.string(), file.open(/*or_stream=*/true))) {}

PackedText::PackedText(std::istream& in, std::string name)
    : PackedText(std::make_unique<Buffer>(std::move(name), in.rdbuf())) {}

PackedText::~PackedText() = default;

std::string_view PackedText::packing() {
  try {
    return buffer_->packing();
  } catch (const std::ios_base::failure&) {
    buffer_->fail_read();
  }
}

std::string_view PackedText::next_block() {
  try {
    if (peek() == traits_type::eof())
      return {};
  } catch (const std::ios_base::failure&) {
    buffer_->fail_read();
  }
  return buffer_->take();
}

std::string read_text_file(const RootedPath& file) {
  PackedText in(file);
  std::string text;
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    text += block;
    SEQCONV_CHECK(
        text.size() <= kMostOfAText,
        "cannot read '",
        file.string(),
        "': more than 4 GiB of text, too large to be read whole");
  }
  return text;
}

uint64_t count_text_bytes(const RootedPath& file, uint64_t most) {
  PackedText in(file);
  uint64_t count = 0;
  while (count < most) {
    const size_t more = in.next_block().size();
    if (more == 0)
      return count;
    count += more;
  }
  return most;
}

}  // namespace seqconv::internal
