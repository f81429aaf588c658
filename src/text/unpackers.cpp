#include "text/unpackers.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "base/error.h"

namespace seqconv::internal {
namespace {

// `xz -9` wants 65 MiB to unpack.
constexpr uint64_t kMostMemoryOfXz = uint64_t{256} << 20;

/// Drops what a step has taken or filled.
template <class T>
void drop(std::span<T>& bytes, size_t left) {
  bytes = bytes.last(left);
}

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker() {
    constexpr int kGzipAlone = 16;
    if (::inflateInit2(&stream_, MAX_WBITS + kGzipAlone) != Z_OK)
      throw std::bad_alloc();
  }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }

  std::string step(std::span<const char>& in, std::span<char>& out, bool /*ended*/) override {
    if (whole_ && (padding_ || in.front() == '\0'))
      return skip_padding(in);
    if (whole_)
      ::inflateReset(&stream_);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    drop(in, stream_.avail_in);
    drop(out, stream_.avail_out);
    whole_ = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR)
      throw std::bad_alloc();
    if (whole_ || code == Z_OK || code == Z_BUF_ERROR)  // the last: nothing could be done
      return {};
    return stream_.msg == nullptr ? "the data are no gzip" : stream_.msg;
  }

  bool is_whole() const override { return whole_; }

 private:
  /// Zeros fill the last block of a tape; gzip passes them over too.
  std::string skip_padding(std::span<const char>& in) {
    padding_ = true;
    const auto other = std::ranges::find_if(in, [](char byte) { return byte != '\0'; });
    const bool zeros = other == in.end();
    drop(in, static_cast<size_t>(in.end() - other));
    return zeros ? "" : "other bytes follow the end";
  }

  z_stream stream_{};
  bool whole_ = false;
  bool padding_ = false;
};

class XzUnpacker : public Unpacker {
 public:
  XzUnpacker() {
    const auto flags = LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK;
    if (::lzma_stream_decoder(&stream_, kMostMemoryOfXz, flags) != LZMA_OK)
      throw std::bad_alloc();
  }
  XzUnpacker(const XzUnpacker&) = delete;
  XzUnpacker& operator=(const XzUnpacker&) = delete;
  ~XzUnpacker() override { ::lzma_end(&stream_); }

  std::string step(std::span<const char>& in, std::span<char>& out, bool ended) override {
    stream_.next_in = reinterpret_cast<const uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret code = ::lzma_code(&stream_, ended ? LZMA_FINISH : LZMA_RUN);
    drop(in, stream_.avail_in);
    drop(out, stream_.avail_out);
    whole_ = code == LZMA_STREAM_END;
    return reason(code);
  }

  bool is_whole() const override { return whole_; }

 private:
  std::string reason(lzma_ret code) const {
    switch (code) {
      case LZMA_OK:
      case LZMA_STREAM_END:
      case LZMA_BUF_ERROR:  // nothing could be done
        return {};
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        return concat(
            "unpacking needs ",
            ::lzma_memusage(&stream_) >> 20,
            " MiB of memory, and may take ",
            kMostMemoryOfXz >> 20,
            " MiB: unpack it by xz first");
      case LZMA_FORMAT_ERROR:
        return "the data are no xz";
      case LZMA_OPTIONS_ERROR:
        return "the data use options that liblzma does not know";
      case LZMA_UNSUPPORTED_CHECK:
        return "the data have a checksum that liblzma does not know";
      default:
        return "the data are not what was packed";
    }
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool whole_ = false;
};

class ZstandardUnpacker : public Unpacker {
 public:
  ZstandardUnpacker() : stream_(::ZSTD_createDStream()) {
    if (stream_ == nullptr)
      throw std::bad_alloc();
  }
  ZstandardUnpacker(const ZstandardUnpacker&) = delete;
  ZstandardUnpacker& operator=(const ZstandardUnpacker&) = delete;
  ~ZstandardUnpacker() override { ::ZSTD_freeDStream(stream_); }

  std::string step(std::span<const char>& in, std::span<char>& out, bool /*ended*/) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t code = ::ZSTD_decompressStream(stream_, &to, &from);
    drop(in, from.size - from.pos);
    drop(out, to.size - to.pos);
    whole_ = code == 0;
    if (::ZSTD_isError(code) == 0U)
      return {};
    switch (::ZSTD_getErrorCode(code)) {
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_frameParameter_windowTooLarge:
        return "its window is longer than 128 MiB: unpack it by zstd --decompress --long=31 first";
      default:
        return ::ZSTD_getErrorName(code);
    }
  }

  bool is_whole() const override { return whole_; }

 private:
  ZSTD_DStream* stream_;
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(Packing packing) {
  switch (packing) {
    case Packing::kGzip:
      return std::make_unique<GzipUnpacker>();
    case Packing::kXz:
      return std::make_unique<XzUnpacker>();
    case Packing::kZstandard:
      return std::make_unique<ZstandardUnpacker>();
  }
  fail("unknown packing ", static_cast<int>(packing));
}

}  // namespace seqconv::internal
