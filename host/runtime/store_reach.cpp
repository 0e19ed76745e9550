#include "host/runtime/store_reach.hpp"

namespace sluice::runtime {

namespace {

std::string store_text(const std::string& name) {
  return name.empty() ? "the default store" : "store \"" + name + "\"";
}

}  // namespace

std::optional<Error> beyond_store(const config::HostConfig& config, const std::string& from, const std::string& to) {
  const std::string here = config.queue(from).store;
  const std::string there = config.queue(to).store;
  if (here == there) {
    return std::nullopt;
  }
  return Error(ErrorCode::invalid, "queue " + to + " lies in " + store_text(there) + ", the handler's queue " + from +
                                       " in " + store_text(here) +
                                       ", and a transaction cannot write both; give [queues." + to +
                                       "] the store of queue " + from + ", or send to a queue that lies there");
}

}  // namespace sluice::runtime
