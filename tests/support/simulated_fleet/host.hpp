#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tests/support/simulated_fleet/attendant.hpp"
#include "tests/support/simulated_fleet/job.hpp"
#include "tests/support/simulated_fleet/process.hpp"

namespace sluice::test::sim {

/// A host with a job for each of the scene's queues.
class Host : public Process {
 public:
  /// The host's name; what it owns says so, and a little more.
  static std::string name_of(std::size_t number) { return "host-" + std::to_string(number); }

  Host(const Site& site, std::size_t number);

  void start();
  /// Handlers end, all is settled, what it owns is handed over, and then the process ends.
  void leave();
  void rung();

 private:
  void go();

  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<Attendant>> attendants_;
  bool leaving_ = false;
};

}  // namespace sluice::test::sim
