#pragma once

#include <string>

#include "host/operate/describe.hpp"
#include "host/queue/stored_message.hpp"

/// Messages as commands show them, and why they failed.
namespace sluice::operate {

/// What a list shows of a message: state, counts, and why it failed last. Borrows.
struct ListedMessage {
  const queue::StoredMessage& stored;
};

void describe(const ListedMessage& listed, Fields& fields);
/// The whole message. People see the body elsewhere.
void describe(const queue::StoredMessage& stored, Fields& fields);
/// Messages of one cause.
void describe(const queue::ErrorGroup& group, Fields& fields);

/// "STANDARD" or "DLQ"; for a record that names neither what it names, or nothing.
std::string half_text(const queue::StoredMessage& message);

}  // namespace sluice::operate
