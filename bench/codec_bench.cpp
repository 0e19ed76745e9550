#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/requests.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {
namespace {

constexpr std::size_t kItemBytes = 900;
constexpr std::size_t kPageItems = 25;

// A queued message: a body and the attributes that a queue keeps beside it, 900 bytes as DynamoDB counts them.
Item message(std::size_t number) {
  Item item{{"id", AttributeValue("f81d4fae-7dec-11d0-a765-00a0c91e6b" + std::to_string(10 + number))},
            {"version", Number{"3"}},
            {"receive_count", Number{"1"}},
            {"queue_type", AttributeValue("STANDARD")},
            {"created_at", AttributeValue("2026-11-20T23:14:00.906192364Z")},
            {"updated_at", AttributeValue("2026-11-20T23:14:01.906192364Z")},
            {"sent_at", AttributeValue("2026-11-20T23:14:00.906192364Z")},
            {"received_at", AttributeValue("2026-11-20T23:14:01.906192364Z")},
            {"invisible_until_at", AttributeValue("2026-11-20T23:14:31.906192364Z")},
            {"claim", AttributeValue("worker-a#0123456789abcdef")}};
  std::size_t bytes = 0;
  for (const auto& [name, value] : item) {
    const std::string* text = value.get<std::string>();
    bytes += name.size() + (text != nullptr ? text->size() : 2);
  }
  std::string body = R"({"order":12,"customer":"Zo\u00eb","lines":[)";
  body.resize(kItemBytes - bytes - 4, 'x');
  item.emplace("data", AttributeValue(std::move(body)));
  return item;
}

std::string page(std::size_t items) {
  std::string json = R"({"Items":[)";
  for (std::size_t i = 0; i < items; ++i) {
    json += i == 0 ? "" : ",";
    append_item(json, message(i));
  }
  return json + R"(],"Count":25,"ScannedCount":25,"ConsumedCapacity":{"TableName":"jobs","CapacityUnits":3.0}})";
}

void report_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void BM_EncodeItem(benchmark::State& state) {
  const Item item = message(0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode_item(item));
  }
  report_bytes(state, encode_item(item).size());
}
BENCHMARK(BM_EncodeItem);

void BM_DecodeItem(benchmark::State& state) {
  const std::string json = encode_item(message(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode_item(json));
  }
  report_bytes(state, json.size());
}
BENCHMARK(BM_DecodeItem);

void BM_DecodePageOf25(benchmark::State& state) {
  const std::string json = page(kPageItems);
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode_page(json));
  }
  report_bytes(state, json.size());
}
BENCHMARK(BM_DecodePageOf25);

void BM_EncodeBatchOf25Statements(benchmark::State& state) {
  const Statement claim{
      .text =
          R"(UPDATE "jobs" SET version=?, received_at=?, invisible_until_at=? WHERE id=? AND version=? RETURNING ALL NEW *)",
      .parameters = {Number{"4"}, AttributeValue("2026-11-20T23:14:01.906192364Z"),
                     AttributeValue("2026-11-20T23:14:31.906192364Z"),
                     AttributeValue("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), Number{"3"}}};
  const std::vector<Statement> statements(kMaxBatchStatements, claim);
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode_batch_execute(statements));
  }
  report_bytes(state, encode_batch_execute(statements).size());
}
BENCHMARK(BM_EncodeBatchOf25Statements);

void BM_PlainJsonRoundTrip(benchmark::State& state) {
  const std::string json =
      R"({"order":12345678901234567890,"amount":12.50,"lines":[{"sku":"A-1","n":2},{"sku":"B-2","n":1}],"gift":false})";
  for (auto _ : state) {
    const auto value = from_plain_json(json);
    benchmark::DoNotOptimize(to_plain_json(*value));
  }
  report_bytes(state, json.size());
}
BENCHMARK(BM_PlainJsonRoundTrip);

// One request with a body of that many bytes.
void BM_SignRequest(benchmark::State& state) {
  const Signer signer({.region = "eu-west-1"});
  const Credentials credentials{
      .access_key_id = "AKIDEXAMPLE", .secret_access_key = "wJalrXUtnFEMI", .session_token = std::string(400, 't')};
  HttpRequest unsigned_request;
  unsigned_request.url = "https://dynamodb.eu-west-1.amazonaws.com";
  unsigned_request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                              {"X-Amz-Target", "DynamoDB_20120810.BatchExecuteStatement"}};
  unsigned_request.body.assign(static_cast<std::size_t>(state.range(0)), 'x');
  const WallTime time{std::chrono::hours(24 * 365 * 56)};
  for (auto _ : state) {
    HttpRequest request = unsigned_request;
    benchmark::DoNotOptimize(signer.sign(request, credentials, time));
  }
  report_bytes(state, unsigned_request.body.size());
}
BENCHMARK(BM_SignRequest)->Arg(900)->Arg(12'000);

}  // namespace
}  // namespace sluice::dynamo
