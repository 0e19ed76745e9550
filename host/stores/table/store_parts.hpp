#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

class RecordLayout;
/// How the tables hold what a transaction brings to them, by a queue's name.
using RecordLayouts = std::function<std::unique_ptr<RecordLayout>(const std::string& queue)>;

/// The parts that all operations of a store share. The references outlive what is given them.
struct StoreParts {
  dynamo::Client& client;
  TableClock& clock;
  StatementRunner& runner;
  NonceSource& nonces;
  const RecordLayouts& layouts;  ///< of every queue that messages may be sent to from here

  Moment now() const { return {clock.wall_now(), clock.steady_now()}; }
};

}  // namespace sluice::queue::table
