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
/// The whole message: DynamoMQ's keys in DynamoMQ's order, then ours. The body of an application/json message stands as
/// it is, text as a string, and what is not UTF-8 as Base64, which "data_encoding" then says. Times that are not set
/// are empty strings. People see the body elsewhere.
void describe(const queue::StoredMessage& stored, Fields& fields);
void describe(const queue::Failure& failure, Fields& fields);
void describe(const queue::FailedAttempt& attempt, Fields& fields);
/// Messages of one cause.
void describe(const queue::ErrorGroup& group, Fields& fields);

/// "STANDARD" or "DLQ"; for a record that names neither what it names, or nothing.
std::string half_text(const queue::StoredMessage& message);

}  // namespace sluice::operate
