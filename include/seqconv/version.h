#pragma once

/// The version of these headers. Releases that differ in the first two numbers
/// are not compatible; a library says its own by seqconv::version().
#define SEQCONV_VERSION_MAJOR 0
#define SEQCONV_VERSION_MINOR 1
#define SEQCONV_VERSION_PATCH 0
#define SEQCONV_VERSION "0.1.0"

namespace seqconv {

/// Returns the version of the library that was loaded, as SEQCONV_VERSION: it
/// differs from that where another one was installed since the program was
/// built.
__attribute__((visibility("default"))) const char* version();

}  // namespace seqconv
