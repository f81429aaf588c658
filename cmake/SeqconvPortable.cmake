# SEQCONV_PORTABLE: the runtime's library and program need the C library and libgcc_s alone, so
# that they run on other systems than the one that they were built on. All else is linked
# statically, from Debian's archives; of SentencePiece Debian has none, and
# tools/make_sentencepiece.sh makes it of Debian's source (CMAKE_PREFIX_PATH names where).
if(NOT SEQCONV_RUNTIME_ONLY)
  message(FATAL_ERROR
    "SEQCONV_PORTABLE=ON needs SEQCONV_RUNTIME_ONLY=ON: LibTorch has no static libraries.")
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
# libgcc_s stays shared: a static one would ask for a newer C library. Wheels hold files as the
# linker leaves them, so that it strips them.
add_link_options(-static-libstdc++ -s)
