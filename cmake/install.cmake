# `cmake --install`: libraries, headers, the command, and what pkg-config and find_package(yoke) need.
include(CMakePackageConfigHelpers)

install(TARGETS yoke_shared EXPORT yoke-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS yoke_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET yoke_cli)
  install(TARGETS yoke_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${CMAKE_SOURCE_DIR}/docs/yoke.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_SOURCE_DIR}/scripts/completion/yoke.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME yoke)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/yoke DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/yoke)
install(EXPORT yoke-targets NAMESPACE yoke:: DESTINATION ${package_dir} FILE yoke-config.cmake)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/yoke-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/yoke-config-version.cmake DESTINATION ${package_dir})

# Relative to itself, so that `cmake --install --prefix` elsewhere is right too.
file(RELATIVE_PATH YOKE_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/yoke.pc.in ${CMAKE_BINARY_DIR}/yoke.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/yoke.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
