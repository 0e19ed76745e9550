#pragma once

#include "config/config.hpp"

namespace sluice::cost {

/// What was spent at DynamoDB, as its answers reported it. A value. Requests are shares where several messages had one.
struct Spent {
  double requests = 0;
  double read_units = 0;
  double write_units = 0;

  bool none() const { return requests == 0 && read_units == 0 && write_units == 0; }
  Spent& operator+=(const Spent& other) {
    requests += other.requests;
    read_units += other.read_units;
    write_units += other.write_units;
    return *this;
  }
  friend Spent operator*(const Spent& spent, double share) {
    return {spent.requests * share, spent.read_units * share, spent.write_units * share};
  }
};

/// "12 requests, 11.5 RCU, 400.0 WCU (0.120, 0.115 and 4.00 a claim)"; the share of each only where there are any.
std::string text_of(const Spent& spent, std::uint64_t count, std::string_view noun);

/// The same with the messages that were claimed for it, and their size in begun KiB. A value.
struct Usage {
  Spent spent;
  double messages = 0;
  double kib = 0;
  double indexed_kib = 0;  ///< begun KiB of their records in DynamoMQ's table, which take more beside the body
  // How long they had lain there, due, when they were handed out for the first time: what storage is paid for.
  double message_seconds = 0;
  double kib_seconds = 0;  ///< the same, times the size of each to the byte

  bool none() const { return spent.none() && messages == 0; }
  Usage& operator+=(const Usage& other) {
    spent += other.spent;
    messages += other.messages;
    kib += other.kib;
    indexed_kib += other.indexed_kib;
    message_seconds += other.message_seconds;
    kib_seconds += other.kib_seconds;
    return *this;
  }
};

/// A month has so many hours on AWS's bills.
inline constexpr double kHoursPerMonth = 730;

/// What units cost, in one currency and of one day. A value.
class Prices {
 public:
  explicit Prices(config::CostConfig config = {}) : config_(std::move(config)) {}

  const std::string& currency() const { return config_.currency; }
  const config::CostConfig& config() const { return config_; }

  double of(const Spent& spent) const;
  double of_sqs_requests(double requests) const;
  double of_sqs_fifo_requests(double requests) const;
  /// Of what lies in tables and their indexes for a month.
  double of_storage(double bytes) const;

  /// "$1.28", "EUR 0.000004": two digits that say something at least.
  std::string text(double money) const;
  /// "DynamoDB on demand in us-east-1 as of 2026-11-01", or "[cost] of the host file, as of 2026-11-20".
  std::string origin() const;

 private:
  config::CostConfig config_;
};

/// What messages would have cost in one kind of queue, drained by a host that batches. A value.
struct LayoutCost {
  std::string_view layout;  ///< "leased", "dynamomq", "sqs", "sqlite"
  std::string_view what;    ///< for people
  Spent worked{};           ///< by who works: claims and settlements
  Spent whole{};            ///< sending included
  double money_worked = 0;
  double storage = 0;           ///< money for what lay there until it was handed out
  double money_whole = 0;       ///< sending and storage included
  double money_whole_most = 0;  ///< SQS asked message by message; otherwise the same
};

/// For the messages of `usage`, by published rules: DynamoMQ's table, leased, SQS, SQLite. Pure function.
std::vector<LayoutCost> layouts_of(const Usage& usage, const Prices& prices);

}  // namespace sluice::cost
