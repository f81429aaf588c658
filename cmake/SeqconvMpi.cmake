# The communicator of MPI. A library of its own, which the engine opens when several
# processes were started: the program runs where no MPI is installed.
if(SEQCONV_MPI STREQUAL "OFF")
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)
if(SEQCONV_MPI STREQUAL "auto")
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  message(STATUS "MPI: not found; training by several processes is not built")
  return()
endif()
message(STATUS "MPI: ${MPI_CXX_LIBRARIES}")

seqconv_add_layer(mpi SHARED
  SOURCES
    mpi_communicator.cpp
    watchdog.cpp
  DEPENDS
    seqconv_base)
target_link_libraries(seqconv_mpi PRIVATE MPI::MPI_CXX)
# Whoever builds the engine gets what it opens.
add_dependencies(seqconv_engine seqconv_mpi)
