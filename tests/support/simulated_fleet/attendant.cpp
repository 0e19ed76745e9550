#include "tests/support/simulated_fleet/attendant.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::test::sim {

using fleet::BoardPollSchedule;
using queue::Topic;

Attendant::Attendant(Process& process, const std::string& host, std::unique_ptr<queue::NoticeBoard> board,
                     std::size_t boards)
    : process_(process), board_(std::move(board)), boards_(boards), poll_schedule_(board_->traits(), process.time()) {
  record_.instance = record_.name = host + ".eu-west-1.example.com";
  record_.version = "1.0.0";
  record_.address = "0.0.0.0:9100";
  record_.host_file = "/etc/sluice/host.toml";
  record_.state = fleet::HostState::running;
  record_.started_at = process.site().timeline.clock().wall_now();
  for (const std::string& queue : process.site().scene.queues) {
    const auto workers = static_cast<std::uint32_t>(process.site().scene.workers);
    record_.jobs.push_back({.name = "process-" + queue,
                            .queue = queue,
                            .handler = "process",
                            .plugin = "process.so",
                            .plugin_version = "1.2.3",
                            .concurrency = workers,
                            .file_concurrency = workers,
                            .claimed = 123'456,
                            .done = 123'400});
  }
}

void Attendant::act() {
  if (left_) {
    return;
  }
  const auto order = poll_schedule_.next(process_.time());
  if (order.duty != BoardPollSchedule::Duty::none) {
    if (do_duty(order.duty)) {
      poll_schedule_.done(order.duty, process_.time());
    } else {
      poll_schedule_.failed(order.duty, process_.time());
    }
  }
  const SteadyTime next = order.duty == BoardPollSchedule::Duty::none ? order.wake : process_.time();
  process_.when(std::max(next, process_.time() + Duration(1)), [this] { act(); });
}

bool Attendant::do_duty(BoardPollSchedule::Duty duty) {
  switch (duty) {
    case BoardPollSchedule::Duty::look:
      return board_->read(Topic::steering, {}, process_.soon()).has_value();
    case BoardPollSchedule::Duty::tell:
      return tell();
    default:
      return board_->list(Topic::hosts, process_.soon()).has_value();
  }
}

bool Attendant::tell() {
  const std::string text = fleet::write_record(record_, board_->traits().most_bytes);
  poll_schedule_.size(text.size(), boards_);
  const auto posted =
      board_->post(Topic::hosts, {.key = record_.instance, .text = text, .version = version_}, process_.soon());
  version_ = posted ? *posted : version_;
  return posted.has_value();
}

void Attendant::leave() {
  left_ = true;
  static_cast<void>(board_->take_down(Topic::hosts, record_.instance, version_, process_.soon()));
}

}  // namespace sluice::test::sim
