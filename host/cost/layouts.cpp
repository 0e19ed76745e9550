#include "host/cost/layouts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::cost {
namespace {

/// A message of one KiB, where sending, claims and settlements go in full batches.
struct Rates {
  std::string_view layout;
  std::string_view what;
  Spent sent;
  Spent worked;
};

// DynamoMQ's table: a put, a claim and a deletion, each in the table and in its index. Leased: a put and a deletion.
// Reads by the KiB: a quarter of a consistent unit, half of it when eventually consistent.
constexpr std::array<Rates, 3> kTables{
    {{"dynamomq", "DynamoMQ's table", {0.04, 0, 2}, {0.084, 0.112, 4}},
     {"leased", "the leased layout", {0.04, 0, 1}, {0.06, 0.2, 1}},
     {"sqlite", "SQLite on the host's own disk: embedded, nothing is billed", {}, {}}}};

// Standard queues: a request carries ten messages at most, and counts for each begun 64 KiB.
constexpr double kSqsBatch = 10;
constexpr double kSqsRequests = 3;
constexpr double kSqsChunkKib = 64;

LayoutCost of_sqs(double messages, double kib, const Prices& prices) {
  const double chunks = messages > 0 ? std::max(messages, kib / kSqsChunkKib) : 0;
  LayoutCost cost{.layout = "sqs", .what = "SQS standard, ten messages a request or one"};
  cost.whole.requests = chunks * kSqsRequests / kSqsBatch;
  cost.worked.requests = chunks * (kSqsRequests - 1) / kSqsBatch;
  cost.money_worked = prices.of_sqs_requests(cost.worked.requests);
  cost.money_whole = prices.of_sqs_requests(cost.whole.requests);
  cost.money_whole_most = prices.of_sqs_requests(chunks * kSqsRequests);
  return cost;
}

}  // namespace

std::vector<LayoutCost> layouts_of(double messages, double kib, const Prices& prices) {
  std::vector<LayoutCost> all;
  for (const Rates& rates : kTables) {
    LayoutCost cost{.layout = rates.layout, .what = rates.what};
    const auto sized = [&](const Spent& each) {
      return Spent{each.requests * messages, each.read_units * kib, each.write_units * kib};
    };
    cost.worked = sized(rates.worked);
    cost.whole = cost.worked;
    cost.whole += sized(rates.sent);
    cost.money_worked = prices.of(cost.worked);
    cost.money_whole = prices.of(cost.whole);
    cost.money_whole_most = cost.money_whole;
    all.push_back(cost);
  }
  all.insert(all.begin() + 2, of_sqs(messages, kib, prices));
  return all;
}

}  // namespace sluice::cost
