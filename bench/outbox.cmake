# How fast is an outbox drained in order, and how soon does a row reach its handler?
if(TARGET sluice::outbox_postgres)
  add_executable(outbox_bench ${CMAKE_CURRENT_LIST_DIR}/outbox_bench.cpp)
  target_include_directories(outbox_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(outbox_bench PRIVATE sluice::build_options sluice::work sluice::outbox_postgres sluice::test_support)
endif()
