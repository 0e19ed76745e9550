#include "dynamo/client.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

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

/// A decoder that keeps what it read in `output` and reports its capacity.
template <typename Output, typename Decode>
auto keep_in(Output& output, Decode decode) {
  return [&output, decode](std::string_view body) -> Result<AnswerReport> {
    auto decoded = decode(body);
    if (!decoded) {
      return decoded.error();
    }
    output = std::move(*decoded);
    AnswerReport report;
    if constexpr (requires { output.capacity; }) {
      report.capacity = output.capacity;
    }
    return report;
  };
}

Call make_call(std::string operation, std::string table, std::string body) {
  Call call;
  call.operation = std::move(operation);
  call.table = std::move(table);
  call.body = std::move(body);
  return call;
}

Call write_call(std::string operation, std::string table, std::string body, ItemOutput& output) {
  Call call = make_call(std::move(operation), std::move(table), std::move(body));
  call.write = true;
  call.decode = keep_in(output, [](std::string_view text) { return decode_item_output(text, Usage::write); });
  return call;
}

std::string_view operation_of(const PutItemRequest&) { return "PutItem"; }
std::string_view operation_of(const UpdateItemRequest&) { return "UpdateItem"; }
std::string_view operation_of(const DeleteItemRequest&) { return "DeleteItem"; }

template <typename Output>
Result<Output> result_of(Call& call, Output&& output) {
  if (call.error) {
    return std::move(*call.error);
  }
  return std::forward<Output>(output);
}

std::vector<std::string> throttling_reasons_of(const BatchStatementOutput& output) {
  std::vector<std::string> out;
  for (const auto& result : output.results) {
    if (result.error) {
      out.insert(out.end(), result.error->throttling_reasons.begin(), result.error->throttling_reasons.end());
    }
  }
  return out;
}

Call batch_call(const std::vector<Statement>& statements, BatchStatementOutput& output) {
  const Usage usage = usage_of(statements);
  Call call = make_call("BatchExecuteStatement", table_of(statements), encode_batch_execute(statements));
  call.write = usage == Usage::write;
  call.decode = [&output, usage, count = statements.size()](std::string_view body) -> Result<AnswerReport> {
    auto decoded = decode_batch_execute(body, count, usage);
    if (!decoded) {
      return decoded.error();
    }
    output = std::move(*decoded);
    return AnswerReport{output.capacity, throttling_reasons_of(output)};
  };
  return call;
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
  ItemOutput output;
  Call call = make_call("GetItem", request.table, encode(request));
  call.decode = keep_in(output, [](std::string_view body) { return decode_item_output(body, Usage::read); });
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<ItemOutput> Client::put_item(const PutItemRequest& request, Deadline deadline) {
  ItemOutput output;
  Call call = write_call("PutItem", request.table, encode(request), output);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<ItemOutput> Client::update_item(const UpdateItemRequest& request, Deadline deadline) {
  ItemOutput output;
  Call call = write_call("UpdateItem", request.table, encode(request), output);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<ItemOutput> Client::delete_item(const DeleteItemRequest& request, Deadline deadline) {
  ItemOutput output;
  Call call = write_call("DeleteItem", request.table, encode(request), output);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

std::vector<Result<ItemOutput>> Client::write_each(std::span<const ItemWrite> writes, Deadline deadline) {
  std::vector<ItemOutput> outputs(writes.size());
  std::vector<Call> calls;
  calls.reserve(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto call_of = [&output = outputs[i]](const auto& request) {
      return write_call(std::string(operation_of(request)), request.table, encode(request), output);
    };
    calls.push_back(std::visit(call_of, writes[i]));
  }
  core_->run(calls, deadline);
  std::vector<Result<ItemOutput>> results;
  results.reserve(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    results.push_back(result_of(calls[i], std::move(outputs[i])));
  }
  return results;
}

std::vector<TransactResult> Client::transact_each(std::span<const TransactWriteRequest> requests, Deadline deadline) {
  std::vector<TransactResult> results(requests.size());
  std::vector<ItemOutput> outputs(requests.size());
  std::vector<Call> calls;
  calls.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string table = requests[i].actions.empty() ? std::string() : requests[i].actions.front().table;
    Call& call = calls.emplace_back(write_call("TransactWriteItems", table, encode(requests[i]), outputs[i]));
    call.repeatable = !requests[i].token.empty();
    call.refused = [&result = results[i]](std::string_view body) { result.reasons = decode_cancellation(body); };
  }
  core_->run(calls, deadline);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    results[i].error = std::move(calls[i].error);
    results[i].capacity = outputs[i].capacity;
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
  std::vector<Page> outputs(requests.size());
  std::vector<Call> calls;
  calls.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Call& call = calls.emplace_back(make_call("Query", requests[i].table, encode(requests[i])));
    call.decode = keep_in(outputs[i], decode_page);
  }
  core_->run(calls, deadline);
  std::vector<Result<Page>> results;
  results.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    results.push_back(result_of(calls[i], std::move(outputs[i])));
  }
  return results;
}

Result<Page> Client::scan(const ScanRequest& request, Deadline deadline) {
  Page output;
  Call call = make_call("Scan", request.table, encode(request));
  call.decode = keep_in(output, decode_page);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

std::vector<Result<BatchStatementOutput>> Client::batch_execute(std::span<const std::vector<Statement>> batches,
                                                                Deadline deadline) {
  std::vector<BatchStatementOutput> outputs(batches.size());
  std::vector<Call> calls(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (batches[i].empty() || batches[i].size() > kMaxBatchStatements) {
      calls[i].phase = Call::Phase::done;  // nothing to ask, or nothing that can be
      if (!batches[i].empty()) {
        calls[i].error = too_many("statements", batches[i].size(), kMaxBatchStatements);
      }
      continue;
    }
    calls[i] = batch_call(batches[i], outputs[i]);
  }
  core_->run(calls, deadline);
  std::vector<Result<BatchStatementOutput>> results;
  results.reserve(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    results.push_back(result_of(calls[i], std::move(outputs[i])));
  }
  return results;
}

Result<std::vector<Item>> Client::batch_get(const std::string& table, std::span<const Item> keys, Deadline deadline) {
  if (keys.size() > kMaxBatchKeys) {
    return too_many("keys", keys.size(), kMaxBatchKeys);
  }
  std::vector<Item> items;
  std::vector<Item> left(keys.begin(), keys.end());
  RetryState unread;
  while (!left.empty()) {
    BatchGetOutput output;
    Call call = make_call("BatchGetItem", table, encode_batch_get(table, left));
    call.decode = keep_in(output, decode_batch_get);
    core_->run({&call, 1}, deadline);
    if (call.error) {
      return std::move(*call.error);
    }
    const bool progress = output.unprocessed_keys.size() < left.size();
    items.insert(items.end(), std::make_move_iterator(output.items.begin()),
                 std::make_move_iterator(output.items.end()));
    left = std::move(output.unprocessed_keys);
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
    BatchPutOutput output;
    Call call = make_call("BatchWriteItem", table, encode_batch_put(table, left));
    call.write = true;
    call.decode = keep_in(output, decode_batch_put);
    core_->run({&call, 1}, deadline);
    if (call.error) {
      call.error->outcome_unknown = call.error->outcome_unknown || left.size() < items.size();
      return std::move(*call.error);
    }
    const Error nothing(ErrorKind::throttled, "DynamoDB left " + std::to_string(output.unprocessed_items.size()) +
                                                  " items unwritten; it asks for fewer requests");
    left = std::move(output.unprocessed_items);
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
  TableDescription output;
  Call call = make_call("CreateTable", request.name, encode(request));
  call.write = true;
  call.decode = keep_in(output, decode_table);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<TableDescription> Client::describe_table(const std::string& table, Deadline deadline) {
  TableDescription output;
  Call call = make_call("DescribeTable", table, encode_describe_table(table));
  call.decode = keep_in(output, decode_table);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<TimeToLive> Client::describe_time_to_live(const std::string& table, Deadline deadline) {
  TimeToLive output;
  Call call = make_call("DescribeTimeToLive", table, encode_describe_table(table));
  call.decode = keep_in(output, decode_time_to_live);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

Result<TimeToLive> Client::enable_time_to_live(const std::string& table, const std::string& attribute,
                                               Deadline deadline) {
  TimeToLive output;
  Call call = make_call("UpdateTimeToLive", table, encode_enable_time_to_live(table, attribute));
  call.write = true;
  call.decode = keep_in(output, decode_time_to_live);
  core_->run({&call, 1}, deadline);
  return result_of(call, std::move(output));
}

}  // namespace sluice::dynamo
