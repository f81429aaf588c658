#pragma once

#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <functional>
#include <string>
#include <string_view>

/// Packs text as the programs of these names do, with checksums.
namespace seqconv::internal::testing {

inline std::string packed_by_gzip(std::string_view text) {
  constexpr int kGzip = 16;
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string packed_by_xz(std::string_view text, lzma_check check = LZMA_CHECK_CRC64) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(
      lzma_easy_buffer_encode(
          /*preset=*/1,
          check,
          nullptr,
          reinterpret_cast<const uint8_t*>(text.data()),
          text.size(),
          reinterpret_cast<uint8_t*>(packed.data()),
          &size,
          packed.size()),
      LZMA_OK);
  packed.resize(size);
  return packed;
}

/// `window`: logarithm of its length, 0 for the usual one.
inline std::string packed_by_zstandard(std::string_view text, int window = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
  if (window > 0)  // else the window is as short as the text
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string packed(ZSTD_compressBound(text.size()) + 32, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  if (window > 0)
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0u);
  packed.resize(out.pos);
  ZSTD_freeCCtx(context);
  return packed;
}

struct Packer {
  const char* name;
  std::function<std::string(std::string_view)> pack;
};

inline const Packer kPackers[] = {
    {"gzip", packed_by_gzip},
    {"xz", [](std::string_view text) { return packed_by_xz(text); }},
    {"Zstandard", [](std::string_view text) { return packed_by_zstandard(text); }},
};

}  // namespace seqconv::internal::testing
