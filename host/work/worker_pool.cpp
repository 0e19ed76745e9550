#include "host/work/worker_pool.hpp"

#include <utility>

namespace sluice::work {

WorkerPool::WorkerPool(SharedFlow& flow, Settings settings, std::vector<Worker> workers)
    : flow_(flow), settings_(std::move(settings)), workers_(std::move(workers)) {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    threads_.emplace_back("sluice-work-" + std::to_string(i));
  }
}

Result<void> WorkerPool::start() {
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    if (auto started = threads_[i].start([this, i](const std::stop_token& stop) { run(i, stop); }); !started) {
      return started;
    }
  }
  return {};
}

void WorkerPool::stop() {
  for (ServiceThread& thread : threads_) {
    thread.request_stop();
  }
  for (ServiceThread& thread : threads_) {
    thread.stop();
  }
}

void WorkerPool::stop_idle_until(SteadyTime time) {
  for (ServiceThread& thread : threads_) {
    thread.request_stop();
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (workers_[i].hand.view().running == nullptr) {
      threads_[i].stop_until(time);
    }
  }
}

void WorkerPool::run(std::uint32_t index, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool dealt = flow_.run([index](JobFlow& flow, SteadyTime now, Notes& notes) {
      flow.collect(index, now, notes);
      return flow.deal(index, now, notes);
    });
    if (dealt) {
      work_off(workers_[index]);
    } else if (!flow_.wait_work(stop)) {
      return;
    }
  }
  // What the last handful brought is handed over even when the pool ends.
  flow_.run([index](JobFlow& flow, SteadyTime now, Notes& notes) { flow.collect(index, now, notes); });
}

void WorkerPool::work_off(Worker& worker) {
  SteadyTime now = flow_.clock().steady_now();
  while (const Task* task = worker.hand.next(now)) {
    plugin::Outcome outcome =
        worker.instance.handle(task->message, settings_.queue, settings_.max_attempts, worker.hand.attempt());
    now = flow_.clock().steady_now();
    worker.hand.finish(std::move(outcome), now);
  }
}

}  // namespace sluice::work
