#pragma once

#include <cstring>

#include "pipeline/translator.h"
#include "runtime/api/status.h"

/// Arguments of C as the layers below take them. A fault of theirs is a CallError.
namespace seqconv::internal {

/// Bytes of a struct when it was first released, of which newer headers have no less. It becomes
/// a number when the struct grows.
template <class T>
constexpr size_t kFirstSize = sizeof(T);
template <>
inline constexpr size_t kFirstSize<seqconv_runtime_options> = 72;  // without max_wait_ms
template <>
inline constexpr size_t kFirstSize<seqconv_translation_request> = 104;  // without terms

/// The struct at `given` as far as its caller knows it, the rest as in `defaults`.
template <class T>
T read_struct(const T* given, const T& defaults, const char* name) {
  if (given == nullptr)
    return defaults;
  const size_t size = given->size;
  if (size < kFirstSize<T> || size > sizeof(T))
    fail_option(
        name,
        ".size must be between ",
        kFirstSize<T>,
        " and ",
        sizeof(T),
        ", as sizeof of the library's version or an older one says, but got ",
        size);
  T own = defaults;
  std::memcpy(&own, given, size);
  own.size = sizeof(T);
  return own;
}

/// `place`, which must be one.
template <class T>
T& required(T* place, const char* name) {
  if (place == nullptr)
    fail_option(name, " must be given, but is NULL");
  return *place;
}

bool read_flag(int32_t flag, const char* name);
std::string_view read_text(const seqconv_text& text, const char* name);
std::vector<std::string> read_texts(const seqconv_text* texts, int64_t count, const char* name);

RuntimeOptions read_options(const seqconv_runtime_options& options);
seqconv_search_options to_c(const DecodingOptions& options);

TranslationRequest read_request(const seqconv_translation_request& request);
ScoreRequest read_request(const seqconv_score_request& request);
GenerationRequest read_request(const seqconv_generation_request& request);

}  // namespace seqconv::internal
