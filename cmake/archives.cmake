# LADE_ARCHIVES: what a binding is linked with, which runs on other machines.  Each library that the
# formats need is linked in where its archive may go into a shared object (some distributions' may
# not); elsewhere the shared one is taken ("auditwheel repair" puts it into a wheel).
# SPDX-License-Identifier: Apache-2.0
include(CheckCSourceCompiles)
set(LADE_ARCHIVES "")
foreach(pair blosc:blosc_compress_ctx snappy:snappy_compress lz4:LZ4_compress_HC
             zstd:ZSTD_compress deflate:libdeflate_alloc_compressor xxhash:XXH64 z:inflate)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 function)
  find_library(LADE_ARCHIVE_${name} NAMES lib${name}.a)
  find_library(LADE_SHARED_${name} NAMES ${name} REQUIRED)
  if(LADE_ARCHIVE_${name})
    set(CMAKE_REQUIRED_FLAGS "-fPIC -shared -Wl,--no-undefined")
    set(CMAKE_REQUIRED_LIBRARIES ${LADE_ARCHIVE_${name}} -l:libstdc++.a m pthread)
    check_c_source_compiles("extern int ${function}(void); void *f = (void *)${function};"
                            LADE_LINKS_${name})
  endif()
  if(LADE_LINKS_${name})
    list(APPEND LADE_ARCHIVES ${LADE_ARCHIVE_${name}})
    if(name STREQUAL "snappy")
      list(APPEND LADE_ARCHIVES -l:libstdc++.a)
    endif()
  else()
    list(APPEND LADE_ARCHIVES ${LADE_SHARED_${name}})
  endif()
endforeach()
