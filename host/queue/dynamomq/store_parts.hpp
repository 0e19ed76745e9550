#pragma once

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "host/queue/dynamomq/nonce.hpp"
#include "host/queue/dynamomq/statement_runner.hpp"
#include "host/queue/dynamomq/table_errors.hpp"
#include "host/queue/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {

/// The parts that all operations of a store share. The references outlive what is given them.
struct StoreParts {
  dynamo::Client& client;
  const Clock& clock;
  StatementRunner& runner;
  NonceSource& nonces;

  Moment now() const { return {clock.wall_now(), clock.steady_now()}; }
};

}  // namespace sluice::queue::dynamomq
