#pragma once

#include <string>

#include "host/cost/cost_book.hpp"
#include "host/cost/prices.hpp"

namespace sluice::runtime {

/// Who spent it, and by which prices that is money. A value.
struct BookedCost {
  cost::CostView view;
  cost::Prices prices;

  bool none() const;
  /// "cost: $0.0012; orders of orders: 12 requests, ...": a job's work on a queue, and the dearest values.
  std::string text() const;
  /// {"currency": "USD", "as_of": "2026-11-01", "money": ..., "jobs": [...], "attribute": "tenant", "values": [...]}
  std::string json() const;
};

}  // namespace sluice::runtime
