#include "host/cost/prices.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/decimal.hpp"

namespace sluice::cost {
namespace {

constexpr double kMillion = 1e6;
constexpr double kGigabyte = 1024.0 * 1024 * 1024;  // as AWS bills it
constexpr int kMostDigits = 10;

/// A message of one KiB, where sending, claims and settlements go in full batches.
struct Rates {
  std::string_view layout;
  std::string_view what;
  Spent sent;
  Spent worked;
  // What lies there: copies of a record, and the bytes of each beside those of its message.
  double copies = 0;
  double besides = 0;
};

// DynamoMQ's table: a put, a claim and a deletion, each in the table and in its index. Leased: a put and a deletion.
// Reads by the KiB: a quarter of a consistent unit, half of it when eventually consistent. Storage: DynamoDB bills 100
// bytes for each item and each entry of an index beside what they hold.
constexpr double kBilledBesides = 100;
constexpr std::array<Rates, 3> kTables{
    {{"dynamomq", "DynamoMQ's table", {0.04, 0, 2}, {0.084, 0.112, 4}, 2, 217 + kBilledBesides},
     {"leased", "the leased layout", {0.04, 0, 1}, {0.06, 0.2, 1}, 1, 10 + kBilledBesides},
     {"sqlite", "SQLite on the host's own disk: embedded, nothing is billed", {}, {}, 0, 0}}};

constexpr double kBytesInKib = 1024;

/// Of the hour, at the price of a month.
double storage_of(const Usage& usage, const Rates& rates, const Prices& prices) {
  const double byte_seconds = rates.copies * (usage.kib_seconds * kBytesInKib + usage.message_seconds * rates.besides);
  return prices.of_storage(byte_seconds / (kHoursPerMonth * 3600));
}

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

std::string text_of(const Spent& spent, std::uint64_t count, std::string_view noun) {
  std::string text = fixed_decimal(spent.requests, 0) + " requests, " + fixed_decimal(spent.read_units, 1) + " RCU, " +
                     fixed_decimal(spent.write_units, 1) + " WCU";
  if (count > 0) {
    const Spent each = spent * (1 / static_cast<double>(count));
    text += " (" + fixed_decimal(each.requests, 3) + ", " + fixed_decimal(each.read_units, 3) + " and " +
            fixed_decimal(each.write_units, 2) + " a " + std::string(noun) + ")";
  }
  return text;
}

double Prices::of(const Spent& spent) const {
  return (spent.read_units * config_.read_unit + spent.write_units * config_.write_unit) / kMillion;
}

double Prices::of_sqs_requests(double requests) const { return requests * config_.sqs_request / kMillion; }

double Prices::of_sqs_fifo_requests(double requests) const { return requests * config_.sqs_fifo_request / kMillion; }

double Prices::of_storage(double bytes) const { return bytes * config_.storage / kGigabyte; }

std::string Prices::text(double money) const {
  int digits = 2;
  while (money > 0 && digits < kMostDigits && money * std::pow(10, digits) < 10) {
    ++digits;
  }
  return (config_.currency == "USD" ? "$" : config_.currency + " ") + fixed_decimal(money, digits);
}

std::string Prices::origin() const {
  return (config_.own_prices ? "[cost] of the host file" : "DynamoDB on demand in us-east-1") +
         std::string(", as of ") + config_.as_of;
}

std::vector<LayoutCost> layouts_of(const Usage& usage, const Prices& prices) {
  std::vector<LayoutCost> all;
  for (const Rates& rates : kTables) {
    LayoutCost cost{.layout = rates.layout, .what = rates.what};
    // A host of an older version tells of no other size.
    const double kib = rates.copies > 1 ? std::max(usage.indexed_kib, usage.kib) : usage.kib;
    const auto sized = [&](const Spent& each) {
      return Spent{each.requests * usage.messages, each.read_units * kib, each.write_units * kib};
    };
    cost.worked = sized(rates.worked);
    cost.whole = cost.worked;
    cost.whole += sized(rates.sent);
    cost.money_worked = prices.of(cost.worked);
    cost.storage = storage_of(usage, rates, prices);
    cost.money_whole = prices.of(cost.whole) + cost.storage;
    cost.money_whole_most = cost.money_whole;
    all.push_back(cost);
  }
  all.insert(all.begin() + 2, of_sqs(usage.messages, usage.kib, prices));
  return all;
}

}  // namespace sluice::cost
