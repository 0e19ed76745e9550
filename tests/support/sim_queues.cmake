# The queues that unit tests and the simulation run on. Included by whoever needs them; the first one makes the target.
include_guard(GLOBAL)
add_library(sluice_sim_queues STATIC
  ${CMAKE_CURRENT_LIST_DIR}/sim_board.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sim_faults.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sim_keys.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sim_queues.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sim_records.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sim_send_marks.cpp)
add_library(sluice::sim_queues ALIAS sluice_sim_queues)
set_target_properties(sluice_sim_queues PROPERTIES SLUICE_OPTIMISED TRUE)
target_include_directories(sluice_sim_queues PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_sim_queues PUBLIC sluice::queue sluice::store_core PRIVATE sluice::build_options)
