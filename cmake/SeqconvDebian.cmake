# Names all Debian packages that a build of the runtime lacks at once, where CMake would name
# one file after another.
set(_needed
  CLI/CLI.hpp libcli11-dev
  nlohmann/json.hpp nlohmann-json3-dev
  toml++/toml.h libtomlplusplus-dev
  sentencepiece_processor.h libsentencepiece-dev
  utf8proc.h libutf8proc-dev
  pcre2.h libpcre2-dev
  zlib.h zlib1g-dev
  lzma.h liblzma-dev
  zstd.h libzstd-dev
  hwy/highway.h libhwy-dev)
set(_missing "")
while(_needed)
  list(POP_FRONT _needed _header _package)
  find_path(_place ${_header} NO_CACHE)
  if(NOT _place)
    string(APPEND _missing " ${_package}")
  endif()
  unset(_place)
endwhile()
find_path(_place DerivedCoreProperties.txt HINTS /usr/share/unicode NO_CACHE)
if(NOT _place AND NOT SEQCONV_UNICODE_DATA)
  string(APPEND _missing " unicode-data")
endif()
unset(_place)
if(_missing)
  message(FATAL_ERROR "Debian packages are missing: sudo apt-get install${_missing}")
endif()
