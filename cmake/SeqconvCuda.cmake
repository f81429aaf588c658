# The CUDA toolkit, asked for with SEQCONV_CUDA=ON and by nothing else.
# Kernels need no LibTorch and the operators' CPU library needs no CUDA:
# libseqconv_ops_cuda.so stands beside it and is loaded where there is a device.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(SEQCONV_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(NOT SEQCONV_NVCC)
    message(FATAL_ERROR
      "SEQCONV_CUDA=ON needs nvcc (CUDA 12 or later) on PATH, in CUDACXX or "
      "in CMAKE_CUDA_COMPILER, but found none.")
  endif()
  set(CMAKE_CUDA_COMPILER ${SEQCONV_NVCC})
endif()
include(${CMAKE_CURRENT_LIST_DIR}/SeqconvCudaArchitectures.cmake)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
# CMake 3.25 does not know that nvcc has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(SEQCONV_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SEQCONV_CCACHE})
endif()
message(STATUS
  "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")

if(NOT EXISTS ${SEQCONV_TORCH_DIR}/lib/libc10_cuda.so)
  message(FATAL_ERROR
    "SEQCONV_CUDA=ON needs a torch package with lib/libc10_cuda.so, but "
    "'${SEQCONV_TORCH_DIR}' has none.")
endif()
# Of LibTorch's CUDA half the operators need streams and guards only.
add_library(seqconv_torch_cuda INTERFACE)
target_link_libraries(seqconv_torch_cuda INTERFACE
  seqconv_torch c10_cuda CUDA::cudart)
