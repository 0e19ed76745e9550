#include "host/cli/queue_session.hpp"

#include <utility>

#include "host/cli/host_file.hpp"

namespace sluice::cli {

OrExit<QueueSession> QueueSession::open(const Arguments& arguments) {
  auto host = load_host_file(arguments);
  if (host.has_error()) {
    return host.error();
  }
  auto parts = std::make_unique<Parts>();
  auto store = runtime::open_store(*host, parts->clock, parts->random, nullptr);
  if (store.has_error()) {
    return Exit::failure(store.error());
  }
  return QueueSession(std::move(*host), std::move(parts), std::move(*store));
}

queue::QueueAddress queue_address(const Arguments& arguments) {
  return {arguments.get("queue"), arguments.has("dlq") ? queue::QueueType::dlq : queue::QueueType::standard};
}

}  // namespace sluice::cli
