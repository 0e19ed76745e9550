#include "host/stores/outbox/row_reader.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/signal_block.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr Duration kReadTime = std::chrono::seconds(30);
// A wait that nothing ends is begun anew, so that a connection which died unnoticed is found out.
constexpr Duration kLongestWait = std::chrono::seconds(30);

}  // namespace

RowReader::RowReader(SharedScheduler& line, Database& database, const Clock& clock, Random& random, PutAside put_aside,
                     Crowded crowded, Named named)
    : scheduler_(line),
      database_(database),
      clock_(clock),
      random_(random),
      put_aside_(std::move(put_aside)),
      tell_crowded_(std::move(crowded)),
      tell_named_(std::move(named)) {}

RowReader::~RowReader() { stop(); }

void RowReader::start() {
  const SignalBlock quiet;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void RowReader::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    scheduler_.wake_reader();
    thread_.join();
  }
}

void RowReader::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!session_ && !connect()) {
      pause(stop);
      continue;
    }
    scheduler_.clear_wake();
    if (stop.stop_requested()) {
      return;
    }
    const ReadOrder order = scheduler_.next_read(clock_.steady_now());
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
  if (tell_named_) {
    const auto source = (*opened)->source_id(Deadline::after(clock_, kConnectTime));
    if (!source) {
      failed(source.error());
      return false;
    }
    tell_named_(*source);
  }
  session_ = std::move(*opened);
  return true;
}

void RowReader::failed(const Error& error) {
  if (ends_session(error.code())) {
    session_.reset();
  }
  scheduler_.trouble(SharedScheduler::Part::reader, error);
}

void RowReader::wait(const ReadOrder& order) {
  const SteadyTime now = clock_.steady_now();
  const auto news =
      session_->wait(scheduler_.wake_descriptor(), Deadline::at(std::min(order.wake, now + kLongestWait)));
  if (!news) {
    failed(news.error());
    return;
  }
  scheduler_.trouble(SharedScheduler::Part::reader, std::nullopt);
  if (*news == ReadSession::News::none) {
    return;
  }
  scheduler_.run([&](RowScheduler& line) {
    if (*news == ReadSession::News::rows) {
      line.rows_told(clock_.steady_now());
    } else {
      line.change_told(clock_.steady_now());
    }
    return true;
  });
}

bool RowReader::read(const ReadOrder& order) {
  const Deadline deadline = Deadline::after(clock_, kReadTime);
  std::optional<Error> error;
  std::vector<Row> aside;
  if (order.kind == ReadOrder::Kind::page) {
    auto page = session_->fetch(order.request, deadline);
    error = page ? std::nullopt : std::optional(page.error());
    aside = scheduler_.run([&](RowScheduler& line) {
      if (!page) {
        line.read_failed();
        return std::vector<Row>();
      }
      return line.page_read(order, std::move(*page), clock_.steady_now());
    });
  } else {
    auto groups = session_->fetch_groups(order.groups, order.request.limit, order.request, deadline);
    error = groups ? std::nullopt : std::optional(groups.error());
    aside = scheduler_.run([&](RowScheduler& line) {
      if (!groups) {
        line.read_failed();
        return std::vector<Row>();
      }
      return line.groups_read(order, std::move(*groups), clock_.steady_now());
    });
  }
  if (error) {
    failed(*error);
    return false;
  }
  retry_.worked();
  scheduler_.trouble(SharedScheduler::Part::reader, std::nullopt);
  if (!aside.empty()) {
    put_aside_(aside);
  }
  const bool crowded = scheduler_.run([](RowScheduler& line) { return line.crowded(); });
  if (crowded && !std::exchange(crowded_, crowded)) {
    tell_crowded_();
  }
  crowded_ = crowded;
  return true;
}

void RowReader::pause(const std::stop_token& stop) {
  const Duration wait = retry_.next(random_);
  const MutexLock lock(mutex_);
  stopped_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + wait), [] { return false; });
}

}  // namespace sluice::queue::outbox
