# The Store that unit tests and the simulation run on. Included by whoever needs it; the first one makes the target.
include_guard(GLOBAL)
add_library(sluice_sim_store STATIC ${CMAKE_CURRENT_LIST_DIR}/sim_store.cpp ${CMAKE_CURRENT_LIST_DIR}/sim_records.cpp)
add_library(sluice::sim_store ALIAS sluice_sim_store)
target_include_directories(sluice_sim_store PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_sim_store PUBLIC sluice::queue PRIVATE sluice::build_options)
