# Names all Debian packages that a Python package's build lacks at once, where CMake would name
# one file after another.
set(_needed hwy/highway.h libhwy-dev)
if(NOT SEQCONV_OPS_ONLY)
  list(APPEND _needed
    CLI/CLI.hpp libcli11-dev
    nlohmann/json.hpp nlohmann-json3-dev
    toml++/toml.h libtomlplusplus-dev
    sentencepiece_processor.h libsentencepiece-dev
    utf8proc.h libutf8proc-dev
    pcre2.h libpcre2-dev
    zlib.h zlib1g-dev
    lzma.h liblzma-dev
    zstd.h libzstd-dev
    boost/beast/version.hpp libboost1.81-dev
    gumbo.h libgumbo-dev
    sodium.h libsodium-dev
    common/segments/de.xml unicode-cldr-core
    DerivedCoreProperties.txt unicode-data)
endif()
set(_missing "")
while(_needed)
  list(POP_FRONT _needed _file _package)
  find_path(_place ${_file} HINTS ${SEQCONV_UNICODE_DATA} ${SEQCONV_CLDR_DATA} /usr/share/unicode /usr/share/unicode/cldr NO_CACHE)
  if(NOT _place)
    string(APPEND _missing " ${_package}")
  endif()
  unset(_place)
endwhile()
if(_missing)
  message(FATAL_ERROR "Debian packages are missing: sudo apt-get install${_missing}")
endif()
