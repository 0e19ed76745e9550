# Hosts, producers and a table under virtual time: for benchmarks and their tests. Included by whoever needs it; the first
# one makes the target.
include_guard(GLOBAL)
add_library(sluice_simulated_fleet STATIC
  ${CMAKE_CURRENT_LIST_DIR}/attendant.cpp ${CMAKE_CURRENT_LIST_DIR}/host.cpp ${CMAKE_CURRENT_LIST_DIR}/job.cpp
  ${CMAKE_CURRENT_LIST_DIR}/process.cpp ${CMAKE_CURRENT_LIST_DIR}/producer.cpp ${CMAKE_CURRENT_LIST_DIR}/sightings.cpp
  ${CMAKE_CURRENT_LIST_DIR}/timeline.cpp ${CMAKE_CURRENT_LIST_DIR}/world.cpp)
add_library(sluice::simulated_fleet ALIAS sluice_simulated_fleet)
set_target_properties(sluice_simulated_fleet PROPERTIES SLUICE_OPTIMISED TRUE)
target_include_directories(sluice_simulated_fleet PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_simulated_fleet
  PUBLIC sluice::dynamodb_model sluice::dynamodb_store sluice::fleet sluice::work sluice::test_support
  PRIVATE sluice::build_options)
