# The libraries of the base. yoke_library(VAR HEADER LIBRARY PACKAGE USE): VAR_LIBRARY and VAR_INCLUDE; what is missing is said with
# the Debian package that brings it and with what it is needed for.
function(yoke_library var header library package use)
  find_library(${var}_LIBRARY ${library})
  find_path(${var}_INCLUDE ${header})
  if(NOT ${var}_LIBRARY OR NOT ${var}_INCLUDE)
    message(FATAL_ERROR "${use} needs lib${library} with ${header}, which is not installed; on Debian: apt-get install ${package}, or scripts/setup for all of them")
  endif()
endfunction()

yoke_library(DNNL dnnl.h dnnl libdnnl-dev "computing on the CPU")
yoke_library(ZLIB zlib.h z zlib1g-dev "compressed data files (.npz, .gz) and pictures in event files")
yoke_library(JPEG jpeglib.h jpeg libjpeg-dev "reading pictures")
yoke_library(PNG png.h png libpng-dev "reading pictures")
yoke_library(JANSSON jansson.h jansson libjansson-dev "reading and writing Keras models")
# HDF5 comes in several builds with headers and libraries of the same names; its pkg-config file tells where the serial one is.
find_package(PkgConfig REQUIRED)
pkg_check_modules(HDF5 QUIET hdf5-serial)
if(NOT HDF5_FOUND)
  pkg_check_modules(HDF5 QUIET hdf5)
endif()
if(NOT HDF5_FOUND)
  message(FATAL_ERROR "reading and writing Keras models needs HDF5, which is not installed; on Debian: apt-get install libhdf5-dev, or scripts/setup for all of them")
endif()
