#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "host/stores/outbox/row_scheduler.hpp"

namespace sluice::queue::outbox {

using Ids = std::vector<std::int64_t>;

/// A table in memory, and a line that reads it; the time stands still until it is moved.
class LineRig {
 public:
  struct Stored {
    Row row;
    bool sent = false;
    SteadyTime retry_at{};
  };

  explicit LineRig(RowScheduler::Settings settings = {}) : settings_(std::move(settings)), line(settings_) {
    std::vector<std::uint32_t> all(4);
    std::iota(all.begin(), all.end(), 0U);
    line.take_buckets(all);
  }

  void add(std::int64_t id, const std::string& group, const std::string& type = "t") {
    Row row{.id = id, .group = {type, group}, .event = "e", .payload = std::string(10, 'x')};
    row.bucket = static_cast<std::uint32_t>(group.empty() ? id % 4 : std::hash<std::string>()(group) % 4);
    table[id] = {std::move(row)};
  }
  void sent(std::int64_t id) {
    table[id].sent = true;
    line.settled({id}, {Fate::Kind::sent}, now);
  }
  void retry(std::int64_t id, Duration wait) {
    ++table[id].row.retries;
    table[id].retry_at = now + wait;
    line.settled({id}, {Fate::Kind::put_back, wait, true}, now);
  }

  Row seen(const Stored& stored) const {
    Row row = stored.row;
    if (stored.retry_at > now) {
      row.wait = stored.retry_at - now;
      row.payload.clear();
    }
    return row;
  }
  bool wanted(const Stored& stored, const FetchRequest& request) const {
    const auto& buckets = request.buckets;
    return (!stored.sent || settings_.resend_sent) && (request.filter->hold_dead || !stored.row.dead) &&
           std::find(buckets.begin(), buckets.end(), stored.row.bucket) != buckets.end();
  }
  Page page(const FetchRequest& request) const {
    Page page;
    for (const auto& [id, stored] : table) {
      const bool beyond = !request.beyond || id > request.beyond->id;
      const bool passed =
          std::find(request.without.begin(), request.without.end(), stored.row.group) != request.without.end();
      if (wanted(stored, request) && beyond && !passed) {
        page.rows.push_back(seen(stored));
        if (page.rows.size() == request.limit) {
          page.more = true;
          break;
        }
      }
    }
    return page;
  }
  Page group(const Group& group, const FetchRequest& request) const {
    Page rows;
    for (const auto& [id, stored] : table) {
      if (wanted(stored, request) && stored.row.group == group && !rows.more) {
        rows.rows.push_back(seen(stored));
        rows.more = rows.rows.size() == request.limit;
      }
    }
    return rows;
  }

  /// One read; false: there was nothing to read.
  bool read() {
    const ReadOrder order = line.next_read(now);
    if (order.kind == ReadOrder::Kind::none) {
      return false;
    }
    ++reads;
    if (order.kind == ReadOrder::Kind::page) {
      line.page_read(order, page(order.request), now);
      return true;
    }
    std::vector<Page> answers;
    for (const Group& one : order.groups) {
      answers.push_back(group(one, order.request));
    }
    line.groups_read(order, std::move(answers), now);
    return true;
  }
  /// Everything that there is to read at this time.
  void read_all() {
    for (int i = 0; i < 10'000; ++i) {
      if (!read()) {
        return;
      }
    }
    ADD_FAILURE() << "it reads without end";
  }
  std::vector<std::int64_t> take(std::size_t max = 1000) {
    std::vector<std::int64_t> ids;
    for (const Row& row : line.take(max, 1U << 20U)) {
      ids.push_back(row.id);
    }
    return ids;
  }
  /// Takes and sends all that can be had, and says in which order.
  std::vector<std::int64_t> drain() {
    std::vector<std::int64_t> order;
    for (int i = 0; i < 10'000; ++i) {
      read_all();
      const auto ids = take();
      if (ids.empty()) {
        return order;
      }
      for (const std::int64_t id : ids) {
        order.push_back(id);
        sent(id);
      }
    }
    ADD_FAILURE() << "it never ends";
    return order;
  }

 private:
  const RowScheduler::Settings settings_;

 public:
  RowScheduler line;
  std::map<std::int64_t, Stored> table;
  SteadyTime now{std::chrono::seconds(100)};
  int reads = 0;
};

}  // namespace sluice::queue::outbox
