#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/doorbell.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

class RecordLayout;
/// How the tables hold what a transaction brings to them, by a queue's name.
using RecordLayouts = std::function<const RecordLayout&(const std::string& queue)>;

/// The parts that all queues in the tables of one client share. The references outlive what is given them.
struct StoreParts {
  dynamo::Client& client;
  TableClock& clock;
  StatementRunner& runner;
  NonceSource& nonces;
  Random& random;
  Doorbell& doorbell;
  const RecordLayouts& layouts;  ///< of every queue that messages may be sent to from here

  Moment now() const { return {clock.wall_now(), clock.steady_now()}; }
};

}  // namespace sluice::queue::table
