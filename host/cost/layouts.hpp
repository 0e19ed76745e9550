#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cost/prices.hpp"

namespace sluice::cost {

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
