# What "make install" puts where: the libraries, the headers, the command with its manual page
# and completion, the pkg-config file, and the CMake package.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/liblade)

install(DIRECTORY include/lade DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET lade)
  install(TARGETS lade RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/man/lade.1)
  install(FILES docs/man/lade.1 docs/man/lade-zarr.1 docs/man/lade-rntuple.1
          docs/man/lade-share.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/completion/lade.bash)
  install(FILES src/cli/completion/lade.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lade)
endif()

# Two exports: who links the shared library needs none of the libraries behind it.
install(TARGETS liblade EXPORT libladeShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS liblade_static EXPORT libladeStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT libladeShared NAMESPACE liblade:: DESTINATION ${package_dir})
install(EXPORT libladeStatic NAMESPACE liblade:: DESTINATION ${package_dir})
configure_package_config_file(cmake/libladeConfig.cmake.in libladeConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(libladeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/libladeConfig.cmake
              ${PROJECT_BINARY_DIR}/libladeConfigVersion.cmake DESTINATION ${package_dir})

# Paths in the pkg-config file are relative to it, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/liblade.pc.in liblade.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/liblade.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
