# The roles of many queues at hand. Included by whoever needs it; the first one makes the target.
include_guard(GLOBAL)
add_library(sluice_desk STATIC ${CMAKE_CURRENT_LIST_DIR}/desk.cpp)
add_library(sluice::desk ALIAS sluice_desk)
target_include_directories(sluice_desk PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_desk PUBLIC sluice::queue PRIVATE sluice::build_options)
