#pragma once

#include <memory>

#include "base/error.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/source.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/table/record_layout.hpp"

/// The sides of one queue on a DynamoMQ table, each made in a file of its own. The references outlive what is made.
namespace sluice::queue::dynamomq {

std::unique_ptr<Source> make_source(QueueState& queue, Half half);
std::unique_ptr<Sender> make_sender(const table::RecordLayout& layout);
std::unique_ptr<Operator> make_operator(QueueState& queue);

/// How DynamoMQ's tables hold their messages, and what goes with them.
std::unique_ptr<table::RecordLayout> make_dynamomq_layout(const table::StoreParts& parts, table::QueueTable place);

/// Why a message with a priority is not taken.
Error no_priorities(const table::QueueTable& place);

}  // namespace sluice::queue::dynamomq
