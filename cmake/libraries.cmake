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
