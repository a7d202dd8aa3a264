# yoke_layer(LAYER): an object library yoke_<layer> from src/<layer>/*.c, if there are any.
# yoke_multi_isa(TARGET FILE...): compile each file once for every instruction set, with -DYK_ISA=<name>.
# Convention: files named *_isa.c are compiled that way, in objects yoke_<layer>_<isa>.

function(yoke_objects target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE ${OpenMP_C_FLAGS})
  set_property(GLOBAL APPEND PROPERTY YOKE_OBJECTS $<TARGET_OBJECTS:${target}>)
endfunction()

function(yoke_multi_isa target)
  foreach(isa ${YOKE_ISAS})
    yoke_objects(${target}_${isa} ${ARGN})
    target_compile_options(${target}_${isa} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-trapping-math)   # both: else loops with a condition stay scalar
    target_compile_options(${target}_${isa} PRIVATE ${YOKE_ISA_FLAGS_${isa}})
    target_compile_definitions(${target}_${isa} PRIVATE YK_ISA=${isa})
    if(TARGET ${target})
      add_dependencies(${target} ${target}_${isa})
    endif()
  endforeach()
endfunction()

function(yoke_layer layer)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/*.c)
  set(isa_sources ${sources})
  list(FILTER sources EXCLUDE REGEX "_isa\\.c$")
  list(FILTER isa_sources INCLUDE REGEX "_isa\\.c$")
  string(REPLACE "/" "_" name yoke_${layer})
  if(sources)
    yoke_objects(${name} ${sources})
    if(layer STREQUAL "backend/cpu")
      target_include_directories(${name} PRIVATE ${DNNL_INCLUDE})
    endif()
  endif()
  if(isa_sources)
    yoke_multi_isa(${name} ${isa_sources})
  endif()
endfunction()
