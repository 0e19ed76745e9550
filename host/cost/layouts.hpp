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
  double money_whole = 0;
  double money_whole_most = 0;  ///< SQS asked message by message; otherwise the same
};

/// For these messages, by published rules: the dearest first. Pure function.
std::vector<LayoutCost> layouts_of(double messages, double kib, const Prices& prices);

}  // namespace sluice::cost
