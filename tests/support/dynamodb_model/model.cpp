#include "tests/support/dynamodb_model/model.hpp"

#include <array>
#include <ctime>
#include <utility>

#include "base/text/json_string.hpp"
#include "dynamo/codec/responses.hpp"
#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

using Operation = std::string (*)(Context&, const json::value&);

constexpr std::array<std::pair<std::string_view, Operation>, 12> kOperations = {{
    {"BatchExecuteStatement", batch_execute_statement},
    {"Query", query},
    {"BatchGetItem", batch_get_item},
    {"GetItem", get_item},
    {"PutItem", put_item},
    {"UpdateItem", update_item},
    {"DeleteItem", delete_item},
    {"BatchWriteItem", batch_write_item},
    {"ExecuteStatement", execute_statement},
    {"Scan", scan},
    {"CreateTable", create_table},
    {"DescribeTable", describe_table},
}};

std::string header_of(const dynamo::HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    const bool same = key.size() == name.size() && std::equal(key.begin(), key.end(), name.begin(), [](char a, char b) {
                        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
                      });
    if (same) {
      return value;
    }
  }
  return {};
}

std::string format_time(WallTime wall, const char* format) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall).time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::optional<WallTime> parse_amz_date(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) {
    return std::nullopt;
  }
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

std::string error_body(const Failure& failure) {
  const bool coral = failure.code == "ValidationException" || failure.code == "SerializationException" ||
                     failure.code == "AccessDeniedException" || failure.code == "InvalidSignatureException" ||
                     failure.code == "UnknownOperationException" || failure.code == "ThrottlingException";
  std::string out =
      coral ? "{\"__type\":\"com.amazon.coral.service#" : "{\"__type\":\"com.amazonaws.dynamodb.v20120810#";
  out += failure.code + "\",\"" + (failure.code == "TransactionCanceledException" ? "Message" : "message") + "\":";
  append_json_string(out, failure.message);
  return out + failure.extra + "}";
}

Failure internal_error() { return {"InternalServerError", "Internal server error", 500, ""}; }

}  // namespace

Model::Model(const Clock& clock, std::uint64_t seed, const ModelSettings& settings)
    : clock_(clock), random_(seed), database_(random_), faults_(random_) {
  const MutexLock lock(mutex_);
  apply(settings);
}

void Model::configure(const ModelSettings& settings) {
  const MutexLock lock(mutex_);
  apply(settings);
}

void Model::apply(const ModelSettings& settings) {
  database_.set_lag(settings.lag);
  database_.throughput().set_limits(settings.limits);
  database_.set_table_creation(settings.table_creation);
  transactions_.set_span(settings.transaction_span);
  faults_.set_rates(settings.faults);
  signature_life_ = settings.signature_life;
}

void Model::inject(Fault fault, Faults::Matcher matcher, int times) {
  const MutexLock lock(mutex_);
  faults_.inject(fault, std::move(matcher), times);
}

void Model::inject_part(PartFault fault, int times) {
  const MutexLock lock(mutex_);
  faults_.inject_part(fault, times);
}

void Model::clear_faults() {
  const MutexLock lock(mutex_);
  faults_.clear();
}

void Model::deny(const std::string& action, const std::string& access_key) {
  const MutexLock lock(mutex_);
  denied_.emplace(access_key, action);
}

void Model::allow_all() {
  const MutexLock lock(mutex_);
  denied_.clear();
}

void Model::spare(const std::string& access_key) {
  const MutexLock lock(mutex_);
  spared_.insert(access_key);
}

void Model::observe(Observer observer) {
  const MutexLock lock(mutex_);
  database_.observe([this, observer = std::move(observer)](const Table& table, const Item* before, const Item* after)
                        SLUICE_NO_TSA { observer(caller_, table.name, before, after); });
}

ModelCounters Model::counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

std::vector<Item> Model::items(const std::string& table) {
  const MutexLock lock(mutex_);
  run_late(clock_.steady_now());
  std::vector<Item> out;
  if (const auto found = database_.tables().find(table); found != database_.tables().end()) {
    for (const auto& [position, record] : found->second.records) {
      out.push_back(record->item);
    }
  }
  return out;
}

std::vector<Item> Model::index_items(const std::string& table, const std::string& index) {
  const MutexLock lock(mutex_);
  run_late(clock_.steady_now());
  std::vector<Item> out;
  if (const auto found = database_.tables().find(table); found != database_.tables().end()) {
    for (const auto& [position, record] : database_.entries(found->second, index)) {
      out.push_back(record->item);
    }
  }
  return out;
}

std::size_t Model::under_way() {
  const MutexLock lock(mutex_);
  run_late(clock_.steady_now());
  std::size_t count = late_.size();
  for (auto& [name, table] : database_.tables()) {
    for (const auto& index : table.indexes) {
      index->advance(database_.now());
      count += index->writes_under_way();
    }
  }
  return count;
}

ModelAnswer Model::handle(const dynamo::HttpRequest& request) {
  const Call call = read(request);
  const MutexLock lock(mutex_);
  const SteadyTime now = clock_.steady_now();
  run_late(now);
  ++counters_.requests[call.operation];
  ModelAnswer out;
  if (spared_.count(call.access_key) > 0) {
    out.response = execute(call, now);
    return out;
  }
  out.latency = faults_.latency();
  const Fault fault = faults_.choose(call.operation, call.body);
  if (fault != Fault::none) {
    ++counters_.faults[std::string(to_string(fault))];
  }
  switch (fault) {
    case Fault::refuse:
      out.delivery = ModelAnswer::Delivery::refused;
      return out;
    case Fault::lose:
      out.delivery = ModelAnswer::Delivery::lost;
      return out;
    case Fault::late:
      out.delivery = ModelAnswer::Delivery::lost;
      late_.emplace(now + faults_.lateness(), call);
      return out;
    case Fault::error_500:
      out.response = failed(internal_error());
      return out;
    case Fault::throttle:
      out.response = failed(throttled());
      return out;
    default:
      break;
  }
  out.response = execute(call, now);
  if (call.operation.rfind("Transact", 0) == 0 || call.operation == "ExecuteTransaction") {
    out.latency = std::max(out.latency, transactions_.span());
  }
  if (fault == Fault::commit_then_500) {
    out.response = failed(internal_error());
  } else if (fault == Fault::commit_then_lose) {
    out.delivery = ModelAnswer::Delivery::lost;
  } else if (fault == Fault::commit_then_cut) {
    out.response.body.resize(out.response.body.size() / 2);
  } else if (fault == Fault::bad_crc) {
    out.response.body.back() = ' ';
  }
  return out;
}

Model::Call Model::read(const dynamo::HttpRequest& request) {
  Call call;
  const std::string target = header_of(request, "x-amz-target");
  call.operation = target.substr(target.find('.') + 1);
  call.body = request.body;
  call.signed_at = header_of(request, "x-amz-date");
  const std::string authorization = header_of(request, "authorization");
  if (const auto at = authorization.find("Credential="); at != std::string::npos) {
    const auto start = at + 11;
    call.access_key = authorization.substr(start, authorization.find('/', start) - start);
  }
  return call;
}

// Requests that come late take effect at their own times, in that order; nobody hears of what they came to.
void Model::run_late(SteadyTime now) {
  while (!late_.empty() && late_.begin()->first <= now) {
    const auto node = late_.extract(late_.begin());
    execute(node.mapped(), node.key());
  }
  database_.set_now(now);
}

dynamo::HttpResponse Model::execute(const Call& call, SteadyTime at) {
  database_.set_now(at);
  caller_ = call.access_key;
  const bool spared = spared_.count(call.access_key) > 0;
  database_.throughput().enforce(!spared);
  faults_.spare_parts(spared);
  Context context{database_,
                  cache_,
                  faults_,
                  [&](std::string_view action, const std::string& table)
                      SLUICE_NO_TSA { check_allowed(call.access_key, action, table); },
                  {}};
  dynamo::HttpResponse response;
  try {
    check_signature(call);
    response = answer(200, dispatch(context, call));
  } catch (const Failure& failure) {
    response = failed(failure);
  }
  counters_.read_units += context.usage.read();
  counters_.write_units += context.usage.write();
  return response;
}

std::string Model::dispatch(Context& context, const Call& call) {
  json::error_code problem;
  json::monotonic_resource memory;
  const json::value request = json::parse(json::string_view(call.body.data(), call.body.size()), problem, &memory);
  if (problem) {
    throw Failure{"SerializationException", "Unable to parse the request: " + problem.message(), 400, ""};
  }
  for (const auto& [name, run] : kOperations) {
    if (name == call.operation) {
      return run(context, request);
    }
  }
  if (call.operation == "TransactWriteItems") {
    return transactions_.write(context, request);
  }
  if (call.operation == "TransactGetItems") {
    return Transactions::get(context, request);
  }
  if (call.operation == "ExecuteTransaction") {
    return transactions_.execute(context, request);
  }
  throw Failure{"UnknownOperationException", "the model of DynamoDB does not know " + call.operation, 400, ""};
}

void Model::check_signature(const Call& call) const {
  if (signature_life_ <= Duration::zero() || call.signed_at.empty()) {
    return;
  }
  const WallTime now = clock_.wall_now();
  const auto signed_at = parse_amz_date(call.signed_at);
  if (signed_at && std::chrono::abs(now - *signed_at) > signature_life_) {
    const bool early = *signed_at > now;
    throw Failure{"InvalidSignatureException",
                  std::string(early ? "Signature not yet current: " : "Signature expired: ") + call.signed_at +
                      (early ? " is still later than " : " is now earlier than ") +
                      format_time(early ? now + signature_life_ : now - signature_life_, "%Y%m%dT%H%M%SZ") + " (" +
                      format_time(now, "%Y%m%dT%H%M%SZ") + (early ? " + 5 min.)" : " - 5 min.)"),
                  400, ""};
  }
}

void Model::check_allowed(const std::string& access_key, std::string_view action, const std::string& table) const {
  if (denied_.empty()) {
    return;
  }
  const std::string name = "dynamodb:" + std::string(action);
  if (denied_.count({"", name}) == 0 && denied_.count({access_key, name}) == 0) {
    return;
  }
  throw Failure{"AccessDeniedException",
                "User: arn:aws:sts::000000000000:assumed-role/model/session is not authorized to perform: " + name +
                    " on resource: " + arn_of(table) + " because no identity-based policy allows the " + name +
                    " action",
                400, ""};
}

dynamo::HttpResponse Model::failed(const Failure& failure) {
  ++counters_.errors[failure.code];
  return answer(failure.status, error_body(failure));
}

dynamo::HttpResponse Model::answer(int status, std::string body) const {
  dynamo::HttpResponse response;
  response.status = status;
  response.headers = {{"content-type", "application/x-amz-json-1.0"},
                      {"date", format_time(clock_.wall_now(), "%a, %d %b %Y %H:%M:%S GMT")},
                      {"x-amz-crc32", std::to_string(dynamo::crc32(body))}};
  response.body = std::move(body);
  return response;
}

}  // namespace sluice::test::model
