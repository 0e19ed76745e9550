#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace sluice::test::sim {

enum class Layout { leased, dynamomq };

/// What a world is made of. A value.
struct Scene {
  Layout layout = Layout::leased;
  std::uint32_t hosts = 1;
  std::uint32_t shards = 8;                          ///< of each queue of the leased layout
  std::size_t workers = 16;                          ///< of each host and queue
  std::vector<std::string> queues{"orders"};         ///< each host has a job for each; messages go to the first
  Duration handler = std::chrono::milliseconds(20);  ///< what a handler takes
  double failures = 0;                               ///< share of attempts that fail and are made again
  std::size_t backlog = 0;                           ///< lies there before the hosts start
  double rate = 0;                                   ///< messages a second that producers send
  std::size_t producers = 0;
  std::size_t batch = 25;   ///< that a producer sends at a time; 1: each by itself, at times of chance
  std::size_t bytes = 700;  ///< of a body
  bool doorbell = false;
  bool notices = false;  ///< hosts tell of themselves on the notice board, and look at what operators want
  Duration lease = std::chrono::seconds(10);
  double partition_write = 1'000;
  double partition_read = 3'000;
  std::uint64_t seed = 1;
};

}  // namespace sluice::test::sim
