# find_package(sluice-client 1): the target sluice::client.
if(NOT TARGET sluice::client)
  include("${CMAKE_CURRENT_LIST_DIR}/sluice-client-targets.cmake")
endif()
