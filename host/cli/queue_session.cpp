#include "host/cli/queue_session.hpp"

#include <cstdio>
#include <utility>

#include "host/cli/unopened.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

std::vector<Flag> with_store_flags(std::vector<Flag> own, Outboxes outboxes) {
  own = with_place_flags(std::move(own), outboxes);
  for (Flag flag : output_flags()) {
    flag.common = true;
    own.push_back(flag);
  }
  return own;
}

void QueueSession::warn(const std::string& line) { std::fprintf(stderr, "sluice: %s\n", line.c_str()); }

OrExit<QueueSession> QueueSession::open(const Arguments& arguments, Queue queue, HostFiles files) {
  SLUICE_TRY(place, QueuePlace::find(arguments, queue, files));
  QueueSession session(std::make_unique<Parts>(std::move(*place)));
  if (!session.queue().empty()) {
    auto opened = session.queues().open_operator(session.queue());
    if (opened.has_error()) {
      return session.unopened(opened.error());
    }
    session.operator_ = std::move(*opened);
  }
  return session;
}

OrExit<std::unique_ptr<queue::Sender>> QueueSession::open_sender() {
  auto sender = queues().open_sender(queue());
  if (sender.has_error()) {
    return unopened(sender.error());
  }
  return std::move(*sender);
}

OrExit<std::unique_ptr<queue::Source>> QueueSession::open_source(queue::Half half) {
  auto source = queues().open_source({queue(), half});
  if (source.has_error()) {
    return unopened(source.error());
  }
  return std::move(*source);
}

Exit QueueSession::unopened(const Error& error) const {
  return cli::unopened(error, place().by_default() ? " (there is no host file, so a DynamoDB table is meant; --config "
                                                     "FILE names a host file)"
                                                   : "");
}

queue::Half half_of(const Arguments& arguments) {
  return arguments.has("dlq") ? queue::Half::dlq : queue::Half::standard;
}

}  // namespace sluice::cli
