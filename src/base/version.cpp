#include "seqconv/version.h"

#include <string_view>

namespace seqconv {

#define SEQCONV_TEXT_OF(number) #number
#define SEQCONV_TEXT(number) SEQCONV_TEXT_OF(number)
static_assert(
    std::string_view(SEQCONV_VERSION) ==
    SEQCONV_TEXT(SEQCONV_VERSION_MAJOR) "." SEQCONV_TEXT(SEQCONV_VERSION_MINOR) "." SEQCONV_TEXT(
        SEQCONV_VERSION_PATCH));

const char* version() {
  return SEQCONV_VERSION;
}

}  // namespace seqconv
