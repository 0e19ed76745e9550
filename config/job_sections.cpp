#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "config/document.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::array<Choice<WhileRunning>, 2> kWhileRunning{
    {{"wait", WhileRunning::wait}, {"reject", WhileRunning::reject}}};
constexpr std::array<Choice<OnDuplicate>, 2> kOnDuplicate{{{"skip", OnDuplicate::skip}, {"run", OnDuplicate::run}}};
constexpr std::array<Choice<OnMissingKey>, 2> kOnMissing{
    {{"reject", OnMissingKey::reject}, {"run", OnMissingKey::run}}};

constexpr std::string_view kMessage = "message";
constexpr std::string_view kAttribute = "attribute:";
constexpr std::string_view kBody = "body:";
constexpr Duration kLongestTtl = std::chrono::hours(24 * 365);

/// As RFC 6901 has it: nothing, or parts that each begin with "/", where "~" is followed by 0 or 1.
bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text.front() != '/') {
    return false;
  }
  for (std::size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) {
      return false;
    }
  }
  return true;
}

const char* key_complaint(const std::string& text) {
  const bool attribute = text.starts_with(kAttribute) && text.size() > kAttribute.size();
  const bool body = text.starts_with(kBody) && is_json_pointer(std::string_view(text).substr(kBody.size()));
  return text == kMessage || attribute || body
             ? nullptr
             : "\"message\", \"attribute:NAME\" or \"body:\" and a JSON pointer, such as \"body:/order/id\"";
}

}  // namespace

void read_idempotency(Section idempotency, JobConfig& config) {
  if (!idempotency.present()) {
    return;
  }
  IdempotencyConfig read;
  if (idempotency.require("key", "say what tells messages apart, as in key = \"message\"") != nullptr) {
    std::string key(kMessage);
    idempotency.read("key", key, key_complaint);
    if (key.starts_with(kAttribute)) {
      read.kind = IdempotencyConfig::Kind::attribute;
      read.path = key.substr(kAttribute.size());
    } else if (key.starts_with(kBody)) {
      read.kind = IdempotencyConfig::Kind::body;
      read.path = key.substr(kBody.size());
    }
  }
  idempotency.read("ttl", read.ttl, {std::chrono::seconds(1), kLongestTtl});
  idempotency.read("while_running", read.while_running, kWhileRunning);
  idempotency.read("on_duplicate", read.on_duplicate, kOnDuplicate);
  idempotency.read("on_missing", read.on_missing, kOnMissing);
  config.idempotency = std::move(read);
}

namespace {

constexpr std::array<Choice<Order>, 3> kOrders{
    {{"none", Order::none}, {"group", Order::group}, {"queue", Order::queue}}};
constexpr std::array<Choice<OnDeadLetter>, 2> kOnDeadLetter{
    {{"continue", OnDeadLetter::go_on}, {"hold", OnDeadLetter::hold}}};

constexpr std::uint32_t kMaxWeight = 1000;
/// "orders:6" or "orders"; nothing for anything else.
std::optional<WeightedQueue> parse_weighted(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  WeightedQueue queue{.name = text.substr(0, colon)};
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [rest, code] = std::from_chars(text.data() + colon + 1, end, queue.weight);
    if (code != std::errc() || rest != end || queue.weight == 0 || queue.weight > kMaxWeight) {
      return std::nullopt;
    }
  }
  return name_complaint(queue.name) == nullptr ? std::optional(queue) : std::nullopt;
}

const char* weighted_complaint(const std::string& text) {
  return parse_weighted(text) ? nullptr : "a queue and its weight of 1 to 1000, such as \"orders:6\"";
}

}  // namespace

void read_queues(Section job, Reader& reader, JobConfig& config) {
  const Member* several = job.find("queues");
  if (several == nullptr) {
    if (job.require("queue", "name the queue, as in queue = \"orders\"") != nullptr) {
      job.read("queue", config.queue, name_complaint);
      config.queue_place = job.find("queue")->value.place;
    }
    return;
  }
  config.queue_place = several->value.place;
  if (const Member* one = job.find("queue")) {
    reader.error(one->place, "'queue' in [job] cannot stand beside 'queues'; put it into that list");
    return;
  }
  std::vector<std::string> texts;
  job.read("queues", texts, weighted_complaint);
  for (const std::string& text : texts) {
    const auto queue = parse_weighted(text);
    if (!queue) {
      continue;
    }
    const auto same = [&](const WeightedQueue& other) { return other.name == queue->name; };
    if (std::any_of(config.queues.begin(), config.queues.end(), same)) {
      reader.error(several->value.place, "'queues' in [job] names \"" + queue->name + "\" twice; give it one weight");
    }
    config.queues.push_back(*queue);
  }
  const auto* list = std::get_if<Array>(&several->value.content);
  if (list != nullptr && list->empty()) {
    reader.error(several->value.place,
                 "'queues' in [job] is empty; name queues, as in queues = [\"urgent:6\", \"bulk:1\"]");
  }
  config.queue = config.queues.empty() ? "" : config.queues.front().name;
}

void read_order(Section job, Reader& reader, JobConfig& config) {
  job.read("order", config.order, kOrders);
  if (const Member* fair = job.find("fair")) {
    if (const auto* value = std::get_if<bool>(&fair->value.content)) {
      config.fair = *value;
    } else if (!std::holds_alternative<BrokenValue>(fair->value.content)) {
      reader.error(fair->value.place, job.naming("fair") + "must be true or false");
    }
    if (config.fair && config.order != Order::none) {
      reader.error(fair->place,
                   "'fair' in [job] is for messages without order; with 'order' groups have their turns anyway");
    }
  }
  job.read("on_dead_letter", config.on_dead_letter, kOnDeadLetter);
  if (config.on_dead_letter == OnDeadLetter::hold) {
    const Place place = job.find("on_dead_letter")->place;
    if (config.order == Order::none) {
      reader.error(place, "'on_dead_letter' in [job] needs an order to hold up: set order = \"group\" or \"queue\"");
    } else if (config.dead_letter != DeadLetterPolicy::move) {
      reader.error(place,
                   "'on_dead_letter' in [job] needs dead letters: with source = \"dlq\" or another 'policy' in "
                   "[job.dead_letter] than \"move\" there are none; take it away");
    }
  }
}

void read_priorities(Section priorities, Reader& reader, JobConfig& config) {
  config.weighs_priorities = priorities.present();
  priorities.read("critical", config.priorities.critical, 1, kMaxWeight);
  priorities.read("high", config.priorities.high, 1, kMaxWeight);
  priorities.read("normal", config.priorities.normal, 1, kMaxWeight);
  priorities.read("low", config.priorities.low, 1, kMaxWeight);
  if (priorities.present() && (config.order != Order::none || config.fair)) {
    reader.error(
        priorities.place(),
        "[job.priorities] cannot stand beside 'order' or 'fair', which give the turns by group; take one away, "
        "or use a queue for each class and one job with queues = [\"urgent:6\", \"bulk:1\"]");
  }
}

}  // namespace sluice::config
