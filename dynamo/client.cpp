#include "dynamo/client.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "dynamo/client_core.hpp"
#include "dynamo/codec/requests.hpp"
#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {
namespace {

/// The first name in double quotes, which in PartiQL is the table's; empty when there is none.
std::string_view table_of(std::string_view statement) {
  const auto open = statement.find('"');
  const auto close = open == std::string_view::npos ? open : statement.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view() : statement.substr(open + 1, close - open - 1);
}

/// The table that all statements name; empty when they differ.
std::string table_of(const std::vector<Statement>& statements) {
  const std::string_view first = statements.empty() ? std::string_view() : table_of(statements.front().text);
  const bool same = std::all_of(statements.begin(), statements.end(),
                                [&](const Statement& statement) { return table_of(statement.text) == first; });
  return same ? std::string(first) : std::string();
}

Call reading_call(std::string operation, std::string table, std::string body) {
  Call call;
  call.operation = std::move(operation);
  call.table = std::move(table);
  call.body = std::move(body);
  return call;
}

Call writing_call(std::string operation, std::string table, std::string body) {
  Call call = reading_call(std::move(operation), std::move(table), std::move(body));
  call.write = true;
  return call;
}

Call call_of(const PutItemRequest& request) { return writing_call("PutItem", request.table, encode(request)); }
Call call_of(const UpdateItemRequest& request) { return writing_call("UpdateItem", request.table, encode(request)); }
Call call_of(const DeleteItemRequest& request) { return writing_call("DeleteItem", request.table, encode(request)); }

Result<ItemOutput> decode_written(std::string_view body) { return decode_item_output(body, Usage::write); }

std::vector<std::string> throttling_reasons_of(const BatchStatementOutput& output) {
  std::vector<std::string> out;
  for (const auto& result : output.results) {
    if (result.error) {
      out.insert(out.end(), result.error->throttling_reasons.begin(), result.error->throttling_reasons.end());
    }
  }
  return out;
}

Error too_many(const char* what, std::size_t count, std::size_t most) {
  return {ErrorKind::validation,
          "a batch of " + std::to_string(count) + " " + what + ": DynamoDB takes at most " + std::to_string(most)};
}

Error nothing_read(std::size_t keys) {
  return {ErrorKind::throttled,
          "DynamoDB left all of " + std::to_string(keys) + " keys unread; it asks for fewer requests"};
}

}  // namespace

Client::Client(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials, const Clock& clock,
               Random& random)
    : core_(std::make_unique<Core>(std::move(options), transport, credentials, clock, random)) {}

Client::~Client() = default;

std::optional<ClockReading> Client::clock_reading() const { return core_->clock_reading(); }

void Client::stop() { core_->stop(); }

Result<std::string> Client::endpoint(Deadline deadline) { return core_->endpoint_url(deadline); }

Result<ItemOutput> Client::get_item(const GetItemRequest& request, Deadline deadline) {
  const auto decode = [](std::string_view body) { return decode_item_output(body, Usage::read); };
  return core_->ask<ItemOutput>(reading_call("GetItem", request.table, encode(request)), decode, deadline);
}

Result<ItemOutput> Client::put_item(const PutItemRequest& request, Deadline deadline) {
  return core_->ask<ItemOutput>(call_of(request), decode_written, deadline);
}

Result<ItemOutput> Client::update_item(const UpdateItemRequest& request, Deadline deadline) {
  return core_->ask<ItemOutput>(call_of(request), decode_written, deadline);
}

Result<ItemOutput> Client::delete_item(const DeleteItemRequest& request, Deadline deadline) {
  return core_->ask<ItemOutput>(call_of(request), decode_written, deadline);
}

std::vector<Result<ItemOutput>> Client::write_each(std::span<const ItemWrite> writes, Deadline deadline) {
  std::vector<Call> calls;
  calls.reserve(writes.size());
  for (const ItemWrite& write : writes) {
    calls.push_back(std::visit([](const auto& request) { return call_of(request); }, write));
  }
  return core_->ask_each<ItemOutput>(calls, decode_written, deadline);
}

std::vector<TransactResult> Client::transact_each(std::span<const TransactWriteRequest> requests, Deadline deadline) {
  std::vector<TransactResult> results(requests.size());
  std::vector<Call> calls;
  calls.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string table = requests[i].actions.empty() ? std::string() : requests[i].actions.front().table;
    Call& call = calls.emplace_back(writing_call("TransactWriteItems", table, encode(requests[i])));
    call.repeatable = !requests[i].token.empty();
    call.refused = [&result = results[i]](std::string_view body) { result.reasons = decode_cancellation(body); };
  }
  auto answers = core_->ask_each<ItemOutput>(calls, decode_written, deadline);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (answers[i]) {
      results[i].capacity = answers[i]->capacity;
    } else {
      results[i].error = answers[i].error();
    }
    if (!results[i].error || results[i].error->exception_name != "TransactionCanceledException") {
      results[i].reasons.clear();  // of an attempt before
    }
  }
  return results;
}

Result<Page> Client::query(const QueryRequest& request, Deadline deadline) {
  return std::move(query_each({&request, 1}, deadline).front());
}

std::vector<Result<Page>> Client::query_each(std::span<const QueryRequest> requests, Deadline deadline) {
  std::vector<Call> calls;
  calls.reserve(requests.size());
  for (const QueryRequest& request : requests) {
    calls.push_back(reading_call("Query", request.table, encode(request)));
  }
  return core_->ask_each<Page>(calls, decode_page, deadline);
}

Result<Page> Client::scan(const ScanRequest& request, Deadline deadline) {
  return core_->ask<Page>(reading_call("Scan", request.table, encode(request)), decode_page, deadline);
}

std::vector<Result<BatchStatementOutput>> Client::batch_execute(std::span<const std::vector<Statement>> batches,
                                                                Deadline deadline) {
  std::vector<BatchStatementOutput> outputs(batches.size());
  std::vector<Call> calls(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<Statement>& batch = batches[i];
    if (batch.empty() || batch.size() > kMaxBatchStatements) {
      calls[i].phase = Call::Phase::done;  // nothing to ask, or nothing that can be
      if (!batch.empty()) {
        calls[i].error = too_many("statements", batch.size(), kMaxBatchStatements);
      }
      continue;
    }
    const Usage usage = usage_of(batch);
    calls[i] = reading_call("BatchExecuteStatement", table_of(batch), encode_batch_execute(batch));
    calls[i].write = usage == Usage::write;
    calls[i].decode = [&output = outputs[i], &batch, usage](std::string_view body) -> Result<AnswerReport> {
      SLUICE_TRY(decoded, decode_batch_execute(body, batch.size(), usage));
      output = std::move(*decoded);
      return AnswerReport{output.capacity, throttling_reasons_of(output)};
    };
  }
  core_->run(calls, deadline);
  return Core::results_of(std::span(calls), std::span(outputs));
}

Result<std::vector<Item>> Client::batch_get(const std::string& table, std::span<const Item> keys, Deadline deadline) {
  if (keys.size() > kMaxBatchKeys) {
    return too_many("keys", keys.size(), kMaxBatchKeys);
  }
  std::vector<Item> items;
  std::vector<Item> left(keys.begin(), keys.end());
  RetryState unread;
  while (!left.empty()) {
    SLUICE_TRY(output, core_->ask<BatchGetOutput>(reading_call("BatchGetItem", table, encode_batch_get(table, left)),
                                                  decode_batch_get, deadline));
    const bool progress = output->unprocessed_keys.size() < left.size();
    std::move(output->items.begin(), output->items.end(), std::back_inserter(items));
    left = std::move(output->unprocessed_keys);
    if (progress) {
      unread = {};  // 16 MB an answer is a limit of DynamoDB's, and no sign of trouble
    } else if (auto failure = core_->pause_before_retry(nothing_read(left.size()), unread, deadline)) {
      return std::move(*failure);
    }
  }
  return items;
}

Result<void> Client::batch_put(const std::string& table, std::span<const Item> items, Deadline deadline) {
  if (items.size() > kMaxBatchPuts) {
    return too_many("items", items.size(), kMaxBatchPuts);
  }
  std::vector<Item> left(items.begin(), items.end());
  RetryState unwritten;
  while (!left.empty()) {
    auto output = core_->ask<BatchPutOutput>(writing_call("BatchWriteItem", table, encode_batch_put(table, left)),
                                             decode_batch_put, deadline);
    if (!output) {
      Error failure = output.error();
      failure.outcome_unknown = failure.outcome_unknown || left.size() < items.size();
      return failure;
    }
    const Error nothing(ErrorKind::throttled, "DynamoDB left " + std::to_string(output->unprocessed_items.size()) +
                                                  " items unwritten; it asks for fewer requests");
    left = std::move(output->unprocessed_items);
    if (left.empty()) {
      break;
    }
    if (auto failure = core_->pause_before_retry(nothing, unwritten, deadline)) {
      failure->outcome_unknown = left.size() < items.size();
      return std::move(*failure);
    }
  }
  return {};
}

Result<TableDescription> Client::create_table(const CreateTableRequest& request, Deadline deadline) {
  return core_->ask<TableDescription>(writing_call("CreateTable", request.name, encode(request)), decode_table,
                                      deadline);
}

Result<TableDescription> Client::describe_table(const std::string& table, Deadline deadline) {
  return core_->ask<TableDescription>(reading_call("DescribeTable", table, encode_describe_table(table)), decode_table,
                                      deadline);
}

Result<TimeToLive> Client::describe_time_to_live(const std::string& table, Deadline deadline) {
  return core_->ask<TimeToLive>(reading_call("DescribeTimeToLive", table, encode_describe_table(table)),
                                decode_time_to_live, deadline);
}

Result<TimeToLive> Client::enable_time_to_live(const std::string& table, const std::string& attribute,
                                               Deadline deadline) {
  return core_->ask<TimeToLive>(writing_call("UpdateTimeToLive", table, encode_enable_time_to_live(table, attribute)),
                                decode_time_to_live, deadline);
}

}  // namespace sluice::dynamo
