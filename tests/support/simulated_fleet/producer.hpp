#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/support/simulated_fleet/process.hpp"

namespace sluice::test::sim {

/// Somebody who sends to the scene's first queue.
class Producer : public Process {
 public:
  /// What it does by itself. A value.
  struct Habit {
    double rate = 0;                                  ///< messages a second
    std::size_t batch = 25;                           ///< at a time; 1: at times of chance
    std::size_t left = static_cast<std::size_t>(-1);  ///< so many, and then no more
  };
  Producer(const Site& site, const std::string& name, std::uint64_t seed, const Habit& habit);

  void send(std::size_t count);
  /// Sends from then on; `after` is called after each batch.
  void start(SteadyTime first, std::function<void()> after);
  /// How long until the next batch.
  Duration pause();

 private:
  void go_on();

  Habit habit_;
  SeededRandom arrivals_;  ///< of its own, so that messages come at the same times whatever the layout
  std::unique_ptr<queue::Sender> sender_;
  std::function<void()> after_;
};

}  // namespace sluice::test::sim
