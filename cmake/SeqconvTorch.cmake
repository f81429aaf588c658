# Imported target for the CPU half of LibTorch, from an installed torch wheel.
# find_package(Torch) would demand a CUDA toolkit and link all of CUDA; the
# CPU libraries need neither.
if(SKBUILD AND NOT SEQCONV_TORCH_DIR)
  # pip installs beside a torch: that one, whatever else lies around.
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/torch/torch_location.py
    OUTPUT_VARIABLE SEQCONV_TORCH_DIR
    COMMAND_ERROR_IS_FATAL ANY)
elseif(NOT SEQCONV_TORCH_DIR)
  file(GLOB _torch_dirs
    ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(_torch_dirs)
    list(GET _torch_dirs 0 SEQCONV_TORCH_DIR)
  endif()
endif()
if(NOT EXISTS ${SEQCONV_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR
    "SEQCONV_TORCH_DIR must name a torch package with lib/libtorch_cpu.so, "
    "but got '${SEQCONV_TORCH_DIR}'. Run tools/setup.sh first.")
endif()
# "2.11.0+cpu", as a torch package or LibTorch's own archive says it.
set(SEQCONV_TORCH_VERSION "")
if(EXISTS ${SEQCONV_TORCH_DIR}/version.py)
  file(STRINGS ${SEQCONV_TORCH_DIR}/version.py SEQCONV_TORCH_VERSION
    REGEX "^__version__ = ")
  string(REGEX REPLACE ".*['\"](.*)['\"].*" "\\1"
    SEQCONV_TORCH_VERSION "${SEQCONV_TORCH_VERSION}")
elseif(EXISTS ${SEQCONV_TORCH_DIR}/build-version)
  file(STRINGS ${SEQCONV_TORCH_DIR}/build-version SEQCONV_TORCH_VERSION)
endif()
message(STATUS "LibTorch: ${SEQCONV_TORCH_VERSION} in ${SEQCONV_TORCH_DIR}")

add_library(seqconv_torch INTERFACE)
target_include_directories(seqconv_torch SYSTEM INTERFACE
  ${SEQCONV_TORCH_DIR}/include
  ${SEQCONV_TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(seqconv_torch INTERFACE ${SEQCONV_TORCH_DIR}/lib)
target_link_libraries(seqconv_torch INTERFACE torch_cpu c10)
file(GLOB _torch_cuda_libs
  ${SEQCONV_TORCH_DIR}/../nvidia/*/lib)
set(SEQCONV_TORCH_RPATH ${SEQCONV_TORCH_DIR}/lib ${_torch_cuda_libs})
# libtorch_cpu.so finds libcudart and libcupti through its own run path.
target_link_options(seqconv_torch INTERFACE
  "LINKER:--allow-shlib-undefined")
