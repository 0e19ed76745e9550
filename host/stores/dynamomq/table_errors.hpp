#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "dynamo/error.hpp"

namespace sluice::queue::dynamomq {

/// A queue and where it lies. A value.
struct QueueTable {
  std::string queue;
  std::string table;
  std::string index;
  std::string region;   ///< for messages
  std::string options;  ///< for messages: those with which `sluice table` finds the table; empty: --queue and the queue
};

/// Turns the client's failures into the store's: one line with the place and the mend.
Error store_error(const QueueTable& place, const dynamo::Error& error);

/// True when the request may have taken effect all the same.
bool outcome_unknown(const dynamo::Error& error);

}  // namespace sluice::queue::dynamomq
