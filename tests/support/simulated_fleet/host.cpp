#include "tests/support/simulated_fleet/host.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::test::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSeeds = 10'000;

}  // namespace

Host::Host(const Site& site, std::size_t number) : Process(site, name_of(number), kSeeds + number) {
  std::map<std::string, std::unique_ptr<queue::NoticeBoard>> boards;
  for (const std::string& queue : site.scene.queues) {
    jobs_.push_back(std::make_unique<Job>(*this, queue));
    if (site.scene.notices) {
      auto board = *queues().open_board(queue);
      boards.emplace(board->traits().place, std::move(board));
    }
  }
  for (auto& [place, board] : boards) {
    attendants_.push_back(std::make_unique<Attendant>(*this, name_of(number), std::move(board), boards.size()));
  }
}

void Host::start() {
  for (auto& job : jobs_) {
    job->start();
  }
  for (auto& attendant : attendants_) {
    attendant->act();
  }
}

void Host::leave() {
  if (alive() && !leaving_) {
    leaving_ = true;
    for (auto& job : jobs_) {
      job->leave();
    }
    go();
  }
}

void Host::rung() {
  if (alive() && !leaving_) {
    jobs_.front()->rung();
  }
}

void Host::go() {
  if (!std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job->idle(); })) {
    when(site().timeline.now() + 5ms, [this] { go(); });
    return;
  }
  for (auto& job : jobs_) {
    job->stop();
  }
  for (auto& attendant : attendants_) {
    attendant->leave();
  }
  kill();
}

}  // namespace sluice::test::sim
