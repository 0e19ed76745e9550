#pragma once

#include <boost/describe/enum.hpp>
#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

/// The words that files have for the values of settings, in the order in which errors name them.
namespace sluice::config {

BOOST_DESCRIBE_ENUM(Backoff, exponential, linear, constant)
BOOST_DESCRIBE_ENUM(CatchUp, none, last, all)
BOOST_DESCRIBE_ENUM(DeadLetterPolicy, move, discard, keep)
BOOST_DESCRIBE_ENUM(Fence, none, strict)
BOOST_DESCRIBE_ENUM(Isolation, thread, process)
BOOST_DESCRIBE_ENUM(Jitter, full, equal, none)
BOOST_DESCRIBE_ENUM(Layout, dynamomq, leased)
BOOST_DESCRIBE_ENUM(LogLevel, trace, debug, info, warn, error)
BOOST_DESCRIBE_ENUM(OnDuplicate, skip, run)
BOOST_DESCRIBE_ENUM(OnMissingKey, reject, run)
BOOST_DESCRIBE_ENUM(Order, none, group, queue)
BOOST_DESCRIBE_ENUM(OutboxKind, postgres, mysql, dynamodb)
BOOST_DESCRIBE_ENUM(Source, standard, dlq)
BOOST_DESCRIBE_ENUM(StoreKind, sqlite, dynamodb)
BOOST_DESCRIBE_ENUM(TraceProtocol, grpc, http)
BOOST_DESCRIBE_ENUM(TraceSampler, always, never, ratio, parent)
BOOST_DESCRIBE_ENUM(WhileRunning, wait, reject)

template <typename Setting>
const char* word_of(Setting value) {
  return boost::describe::enum_to_string(value, "");
}

template <typename Setting>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Setting>>(
      [&words](auto value) { words.emplace_back(value.name); });
  return words;
}

}  // namespace sluice::config
