#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamomq/nonce.hpp"
#include "host/stores/dynamomq/statement_runner.hpp"
#include "host/stores/dynamomq/table_clock.hpp"
#include "host/stores/dynamomq/table_errors.hpp"
#include "host/stores/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {

/// Where a queue of this store lies.
using QueueLocator = std::function<QueueTable(const std::string& queue)>;

/// The parts that all operations of a store share. The references outlive what is given them.
struct StoreParts {
  dynamo::Client& client;
  TableClock& clock;
  StatementRunner& runner;
  NonceSource& nonces;
  const QueueLocator& locate;

  Moment now() const { return {clock.wall_now(), clock.steady_now()}; }
};

}  // namespace sluice::queue::dynamomq
