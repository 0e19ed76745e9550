#include "host/stores/outbox/row_reader.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/signal_block.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr Duration kReadTime = std::chrono::seconds(30);
// A wait that nothing ends is begun anew, so that a connection which died unnoticed is found out.
constexpr Duration kLongestWait = std::chrono::seconds(30);

}  // namespace

RowReader::RowReader(RowScheduler::Settings settings, Database& database, const Clock& clock, Random& random,
                     Events events)
    : database_(database),
      clock_(clock),
      random_(random),
      events_(std::move(events)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      scheduler_(std::move(settings)) {
  SLUICE_ASSERT(wake_.open());
}

void RowReader::start() {
  const SignalBlock quiet;
  thread_ = std::jthread([this](const std::stop_token& stop) { run_until(stop); });
}

void RowReader::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    wake_reader();
    thread_.join();
  }
}

bool RowReader::changed() {
  if (std::exchange(reader_waits_, false)) {
    wake_reader();
  }
  changed_.notify_all();
  return scheduler_.ready() && std::exchange(claimer_waits_, false);
}

std::vector<Row> RowReader::take(std::size_t max, std::size_t bytes) {
  const MutexLock lock(mutex_);
  auto rows = scheduler_.take(max, bytes);
  claimer_waits_ = !scheduler_.ready();
  if (!rows.empty() && std::exchange(reader_waits_, false)) {
    wake_reader();
  }
  return rows;
}

void RowReader::wait_for_first(SteadyTime until) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, until, [this]() SLUICE_REQUIRES(mutex_) {
    return scheduler_.ready() || scheduler_.read_once() || locks_trouble_ || reader_trouble_;
  });
}

void RowReader::wake_reader() {
  const std::uint64_t one = 1;
  // It fails only where the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void RowReader::note_trouble(std::optional<Error> RowReader::*place, std::optional<Error> error) {
  const MutexLock lock(mutex_);
  this->*place = std::move(error);
  changed_.notify_all();
}

std::optional<Error> RowReader::trouble() const {
  const MutexLock lock(mutex_);
  return locks_trouble_ ? locks_trouble_ : reader_trouble_;
}

void RowReader::run_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!session_ && !connect()) {
      pause(stop);
      continue;
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
    if (stop.stop_requested()) {
      return;
    }
    const ReadOrder order = next_read();
    if (order.kind == ReadOrder::Kind::none) {
      wait(order);
    } else if (!read(order)) {
      pause(stop);
    }
  }
}

bool RowReader::connect() {
  auto opened = database_.open_reader(true, Deadline::after(clock_, kConnectTime));
  if (!opened) {
    failed(opened.error());
    return false;
  }
  const auto source = (*opened)->source_id(Deadline::after(clock_, kConnectTime));
  if (!source) {
    failed(source.error());
    return false;
  }
  events_.named(*source);
  session_ = std::move(*opened);
  return true;
}

void RowReader::failed(const Error& error) {
  if (ends_session(error.code())) {
    session_.reset();
  }
  note_trouble(&RowReader::reader_trouble_, error);
}

ReadOrder RowReader::next_read() {
  const MutexLock lock(mutex_);
  ReadOrder order = scheduler_.next_read(clock_.steady_now());
  reader_waits_ = order.kind == ReadOrder::Kind::none;
  return order;
}

void RowReader::wait(const ReadOrder& order) {
  const SteadyTime until = std::min(order.wake, clock_.steady_now() + kLongestWait);
  const auto news = session_->wait(wake_.get(), Deadline::at(until));
  if (!news) {
    failed(news.error());
    return;
  }
  note_trouble(&RowReader::reader_trouble_, std::nullopt);
  if (*news == ReadSession::News::none) {
    return;
  }
  run([&](RowScheduler& rows) {
    if (*news == ReadSession::News::rows) {
      rows.rows_told(clock_.steady_now());
    } else {
      rows.change_told(clock_.steady_now());
    }
    return true;
  });
}

bool RowReader::read(const ReadOrder& order) {
  const Deadline deadline = Deadline::after(clock_, kReadTime);
  std::optional<Error> error;
  std::vector<Row> aside;
  const auto answered = [&](auto answer, auto taken_up) {
    error = answer ? std::nullopt : std::optional(answer.error());
    aside = run([&](RowScheduler& rows) {
      if (!answer) {
        rows.read_failed();
        return std::vector<Row>();
      }
      return (rows.*taken_up)(order, std::move(*answer), clock_.steady_now());
    });
  };
  if (order.kind == ReadOrder::Kind::page) {
    answered(session_->fetch(order.request, deadline), &RowScheduler::page_read);
  } else {
    answered(session_->fetch_groups(order.groups, order.request.limit, order.request, deadline),
             &RowScheduler::groups_read);
  }
  if (error) {
    failed(*error);
    return false;
  }
  retry_.worked();
  note_trouble(&RowReader::reader_trouble_, std::nullopt);
  if (!aside.empty()) {
    events_.put_aside(aside);
  }
  const bool crowded = run([](RowScheduler& rows) { return rows.crowded(); });
  if (!std::exchange(crowded_, crowded) && crowded) {
    events_.crowded();
  }
  return true;
}

void RowReader::pause(const std::stop_token& stop) {
  const Duration wait = retry_.next(random_);
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + wait), [] { return false; });
}

}  // namespace sluice::queue::outbox
