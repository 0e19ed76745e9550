#pragma once

#include <memory>
#include <string>

#include "host/queue/queues.hpp"

/// The sides of the queues of one file. `store` outlives what is made.
namespace sluice::queue::sqlite {

class SharedStore;

/// One half of a queue, for a job.
std::unique_ptr<Source> make_source(SharedStore& store, QueueAddress address);
/// Puts messages into one queue.
std::unique_ptr<Sender> make_sender(SharedStore& store, std::string queue);
/// Looks at one queue and changes what lies in it. What it sees is always what was written last.
std::unique_ptr<Operator> make_operator(SharedStore& store, std::string queue);
/// The notice board of the file: rows beside those of its messages. What hosts tell of themselves is not worth a flush;
/// what operators want and did is.
std::unique_ptr<NoticeBoard> make_board(SharedStore& store);
/// The idempotency keys of one queue. Marks are committed and not flushed: a lost power supply may forget some, with
/// the claims of their messages.
std::unique_ptr<IdempotencyKeys> make_keys(SharedStore& store, std::string queue);

}  // namespace sluice::queue::sqlite
