# Small shared objects that play CUDA's libraries and MPI for the tests of the doctor: build/tests/doctor/fakes/<name>.so.
# yoke_fake(NAME SOURCE DEFINITION...): tests/doctor/fakes/SOURCE.c, which the definitions make old, broken or absent-minded.
function(yoke_fake name source)
  add_library(fake_${name} MODULE ${CMAKE_SOURCE_DIR}/tests/doctor/fakes/${source}.c)
  target_compile_definitions(fake_${name} PRIVATE ${ARGN})
  set_target_properties(fake_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/doctor/fakes)
  add_dependencies(yoke_fakes fake_${name})
endfunction()
add_custom_target(yoke_fakes)
foreach(test doctor_driver doctor_libraries doctor_system cli_doctor)
  add_dependencies(test_${test} yoke_fakes)
endforeach()

yoke_fake(cuda_13_0 cuda VERSION=13000)
yoke_fake(cuda_12_2 cuda VERSION=12020)
yoke_fake(cuda_11_4 cuda VERSION=11040)
yoke_fake(cuda_two cuda VERSION=13000 CARDS=2)
yoke_fake(cuda_mixed cuda VERSION=13000 CARDS=2 SECOND_CAPABILITY=61)
yoke_fake(cuda_volta cuda VERSION=13000 CAPABILITY=70)
yoke_fake(cuda_kepler cuda VERSION=12020 CAPABILITY=35)
yoke_fake(cuda_stub cuda VERSION=13000 INIT=34)
yoke_fake(cuda_no_device cuda VERSION=13000 INIT=100)
yoke_fake(cuda_mismatch cuda VERSION=13000 INIT=803)
yoke_fake(cuda_strange cuda VERSION=13000 INIT=4711)
yoke_fake(cuda_hangs cuda VERSION=13000 HANGS)
yoke_fake(cuda_lacks cuda VERSION=13000 LACKS_COUNT)
add_custom_command(TARGET fake_cuda_stub POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:fake_cuda_stub>
  ${CMAKE_BINARY_DIR}/tests/doctor/stubs/libcuda.so.1)        # where the command itself is shown one

yoke_fake(cudart_13_0 cudart VERSION=13000)
yoke_fake(cudart_13_1 cudart VERSION=13010)
yoke_fake(cudart_12_4 cudart VERSION=12040)
yoke_fake(cudart_11_0 cudart VERSION=11000)
yoke_fake(cudart_undefined cudart VERSION=13000 UNDEFINED)
yoke_fake(cudart_fails cudart VERSION=13000 CODE=35)

yoke_fake(cublas_13 cublas MAJOR=13)
yoke_fake(cublas_12 cublas MAJOR=12)

yoke_fake(cudnn_9_for_13 cudnn VERSION=90100 BUILT_FOR=13000)
yoke_fake(cudnn_9_for_12 cudnn VERSION=90100 BUILT_FOR=12040)
yoke_fake(cudnn_8 cudnn VERSION=8907 BUILT_FOR=12020)
yoke_fake(cudnn_aborts cudnn VERSION=90100 BUILT_FOR=13000 ABORTS)
yoke_fake(cudnn_exits cudnn VERSION=90100 BUILT_FOR=13000 EXITS)

# One that is linked to a library which is then nowhere to be found.
add_library(fake_part SHARED ${CMAKE_SOURCE_DIR}/tests/doctor/fakes/part.c)
set_target_properties(fake_part PROPERTIES OUTPUT_NAME yokepart SOVERSION 7 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/doctor/parts)
yoke_fake(cudnn_needs_part cudnn VERSION=90100 BUILT_FOR=13000 NEEDS_PART)
target_link_libraries(fake_cudnn_needs_part PRIVATE fake_part)

yoke_fake(nccl_2 nccl VERSION=22809)
yoke_fake(mpi_open mpi)
