#include "host/operate/listing.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace sluice::operate {

namespace {

constexpr std::size_t kPageSize = 250;
// Records that are read only to say how many there are.
constexpr std::size_t kCountedAhead = 1000;

std::string_view prefix_of(queue::Half half) { return half == queue::Half::dlq ? "dlq:" : "standard:"; }

}  // namespace

Listing::Listing(queue::Operator& queue, const Clock& clock, ListPlan plan, Reader reader)
    : queue_(queue), clock_(clock), plan_(std::move(plan)), reader_(std::move(reader)) {
  request_.half = plan_.halves.front();
  request_.content = plan_.filter.reads_content();
  request_.newest_first = plan_.newest_first;
}

bool Listing::resume(const std::string& cursor) {
  from_start_ = false;
  if (plan_.halves.size() == 1 || cursor.empty()) {
    request_.cursor = cursor;
    return true;
  }
  for (half_ = 0; half_ < plan_.halves.size(); ++half_) {
    request_.half = plan_.halves[half_];
    const std::string_view prefix = prefix_of(request_.half);
    if (cursor.starts_with(prefix) || cursor + ":" == prefix) {
      request_.cursor = cursor.substr(std::min(prefix.size(), cursor.size()));
      return true;
    }
  }
  return false;
}

Result<void> Listing::run() {
  for (bool goes_on = true; goes_on;) {
    SLUICE_TRY(page, list(page_size()));
    const std::string start = request_.cursor;
    const auto rest = show(*page);
    goes_on = reader_.page_ended();
    if (rest) {
      // The cursor behind the messages of the page that were shown or passed over.
      request_.cursor = start;
      SLUICE_TRY(again, list(*rest));
      request_.cursor = again->next;
      ending_.next = cursor();
      return {};
    }
    if (!next_page(page->next)) {
      return {};
    }
    if (plan_.limit != 0 && ending_.shown == plan_.limit) {
      ending_.next = cursor();
      return {};
    }
  }
  return {};
}

void Listing::count_by_stats() {
  std::uint64_t total = 0;
  for (const queue::Half half : plan_.halves) {
    const auto stats = queue_.stats({.half = half}, deadline());
    if (stats.has_error()) {
      return;
    }
    total += stats->total();
  }
  ending_.total = total;
}

void Listing::count_ahead() {
  if (!from_start_) {
    return;
  }
  std::uint64_t total = ending_.shown;
  std::size_t read = 0;
  bool more = !ending_.next.empty();
  while (more && read < kCountedAhead) {
    const auto page = list(kPageSize);
    if (page.has_error()) {
      return;
    }
    const WallTime now = clock_.wall_now();
    for (const queue::StoredMessage& message : page->messages) {
      total += plan_.filter.matches(message, now) ? 1 : 0;
    }
    read += page->messages.size();
    more = next_page(page->next);
  }
  ending_.total = total;
  ending_.at_least = more;
}

Result<queue::ListPage> Listing::list(std::size_t limit) {
  request_.limit = limit;
  return queue_.list(request_, deadline());
}

std::size_t Listing::page_size() const {
  // A filter passes over messages, so that the limit says nothing about the size of a page.
  const bool whole_pages = plan_.limit == 0 || !plan_.filter.empty();
  return whole_pages ? kPageSize : std::min<std::size_t>(kPageSize, plan_.limit - ending_.shown);
}

/// The place of the first message that is over the limit; nothing when there is none in the page.
std::optional<std::size_t> Listing::show(const queue::ListPage& page) {
  const WallTime now = clock_.wall_now();
  for (std::size_t index = 0; index < page.messages.size(); ++index) {
    if (!plan_.filter.matches(page.messages[index], now)) {
      continue;
    }
    if (plan_.limit != 0 && ending_.shown == plan_.limit) {
      return index;
    }
    reader_.show(page.messages[index], now);
    ++ending_.shown;
  }
  return std::nullopt;
}

/// False when there is none.
bool Listing::next_page(const std::string& next) {
  request_.cursor = next;
  if (next.empty() && ++half_ < plan_.halves.size()) {
    request_.half = plan_.halves[half_];
    return true;
  }
  return !next.empty();
}

/// With the half before it where there are several.
std::string Listing::cursor() const {
  return plan_.halves.size() > 1 ? std::string(prefix_of(request_.half)) + request_.cursor : request_.cursor;
}

}  // namespace sluice::operate
